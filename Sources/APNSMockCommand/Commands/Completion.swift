import ArgumentParser

/// `apns-mock completion`
struct Completion: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "completion", abstract: "Print a completion script for a shell.",
    discussion: """
      To install it:

        bash: apns-mock completion bash > ~/.local/share/bash-completion/completions/apns-mock
        zsh:  apns-mock completion zsh > ~/.zfunc/_apns-mock, with fpath+=~/.zfunc before compinit in ~/.zshrc
        fish: apns-mock completion fish > ~/.config/fish/completions/apns-mock.fish
      """)

  /// The supported shells.
  enum Shell: String, CaseIterable, ExpressibleByArgument {
    case bash, zsh, fish
  }

  @Argument(help: "The shell.")
  var shell: Shell

  func run() {
    let script =
      switch shell {
      case .bash: APNSMock.completionScript(for: .bash)
      case .zsh: APNSMock.completionScript(for: .zsh)
      case .fish: APNSMock.completionScript(for: .fish)
      }
    StandardStream.output.line(script)
  }
}
