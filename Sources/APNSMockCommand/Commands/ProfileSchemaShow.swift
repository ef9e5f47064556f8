import ArgumentParser
import Faults

/// `apns-mock profile schema`
struct ProfileSchemaShow: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "Print the JSON Schema of profile files, for completion and validation in editors.")

  @OptionGroup var output: OutputFlags

  func run() {
    let schema = Array(ProfileSchema.text.utf8)
    output.print(json: output.json ? schema : JSONLayout.indented(schema))
  }
}
