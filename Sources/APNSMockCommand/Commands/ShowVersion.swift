import Notation
import ArgumentParser

/// `apns-mock version`
struct ShowVersion: ParsableCommand {
  static let configuration = CommandConfiguration(commandName: "version", abstract: "Print the version.")

  @OptionGroup var output: OutputFlags

  func run() {
    output.print(text: "apns-mock \(Version.text)") { $0.member("version", Version.text) }
  }
}
