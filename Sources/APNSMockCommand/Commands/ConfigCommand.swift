import ArgumentParser

/// `apns-mock config`
struct ConfigCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config", abstract: "Help with the configuration file of serve.", subcommands: [ConfigSample.self])
}

/// `apns-mock config sample`
struct ConfigSample: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sample", abstract: "Print a configuration file with every setting and its default.",
    discussion: "Settings without a default are commented out. serve --config accepts the file as it is.")

  func run() { StandardStream.output.write(Array(SampleConfiguration.yaml.utf8)) }
}
