import APNSMockAdminAPI
import ArgumentParser
import APNSMockClientCommands
import APNSMockNotation

/// `apns-mock completion`
struct CompletionCommand: ParsableCommand {
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

/// `apns-mock config`
struct ConfigCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config", abstract: "Print a configuration file for serve with every setting and its default.",
    discussion: "Settings without a default are commented out. The file is valid input for serve --config.")

  func run() { StandardStream.output.write(Array(SampleConfiguration.yaml.utf8)) }
}

/// `apns-mock openapi`
struct OpenAPICommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "openapi", abstract: "Print the description of the admin API (OpenAPI 3.1, JSON).",
    discussion: "A running server has the same description at /openapi.json. This command needs no server.")

  @OptionGroup var output: OutputFlags

  func run() {
    let description = APIDescription(version: Version.text).json
    output.print(json: output.json ? description : JSONLayout.indented(description))
  }
}

/// `apns-mock version`
struct VersionCommand: ParsableCommand {
  static let configuration = CommandConfiguration(commandName: "version", abstract: "Print the version.")

  @OptionGroup var output: OutputFlags

  func run() {
    output.print(text: "apns-mock \(Version.text)") { $0.member("version", Version.text) }
  }
}
