import ArgumentParser

/// `apns-mock config`
struct ConfigCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config", abstract: "Print a sample configuration file for serve.", subcommands: [ConfigSample.self])
}

/// `apns-mock config sample`
struct ConfigSample: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sample", abstract: "Print a configuration file with every setting and its default.",
    discussion: "Settings without a default are commented out. The file is valid input for serve --config.")

  func run() { StandardStream.output.write(Array(SampleConfiguration.yaml.utf8)) }
}
