import ArgumentParser

/// A command that starts a server, with the defaults that its help shows where they differ from those of another.
protocol ServerCommand {
  static var shownDefaults: ShownDefaults { get }
}

/// Defaults of a command that starts a server, in words.
struct ShownDefaults {
  let apns: String
  let admin: String
  let certs: String
  let logLevel: String
}

/// The flags of a command that starts a server, as texts: what they mean is decided together with variables and config
/// file.
struct ServeFlags<Command: ServerCommand>: ParsableArguments {
  @Option(
    help: """
      Where providers connect, HOST:PORT; repeatable, port 0 selects a free one. \
      (default: \(Command.shownDefaults.apns))
      """)
  var apns: [String] = []

  @Option(help: "Where the admin API listens, HOST:PORT. (default: \(Command.shownDefaults.admin))")
  var admin: String?

  @Option(
    help: "The folder of certificates and keys, filled at the first start. (default: \(Command.shownDefaults.certs))")
  var certs: String?

  @Option(help: "A folder with fault profiles, *.yaml, besides the built-in ones. (default: none)")
  var profiles: String?

  @Option(help: "The fault profile to begin with: 'flaky-503?rate=0.5' or a file. (default: healthy)")
  var profile: String?

  @Option(help: "Makes generated ids and faults repeatable. (default: random, printed)")
  var seed: String?

  @Option(help: "The environment that is mimicked: sandbox or production. (default: sandbox)")
  var environment: String?

  @Option(help: "What to do where evidence about APNs is open: apple, strict or lenient. (default: apple)")
  var rules: String?

  @Option(help: "How many pushes the inbox keeps. (default: 100000)")
  var maxRecords: String?

  @Option(help: "How much the inbox keeps, as 64MiB. (default: 256MiB)")
  var maxBytes: String?

  @Option(help: "Worker threads. (default: one per core)")
  var threads: String?

  @Option(help: "Where to write down, when ready, where the server listens and what clients need.")
  var portFile: String?

  @Option(
    help: "Where to write the inbox at the end: a record a line, or with the ending .json an array. (default: none)")
  var exportOnExit: String?

  @Option(help: "What the admin listener wants as a bearer token; auto makes one up. (default: none)")
  var adminToken: String?

  @Option(help: "A name the server certificate bears besides the usual ones; repeatable.")
  var san: [String] = []

  @Option(help: "A host name the admin listener answers to besides loopback, addresses and apns-mock; repeatable.")
  var allowHost: [String] = []

  @Option(name: .customLong("client-ca"), help: "A PEM file with a further CA of client certificates; repeatable.")
  var clientCA: [String] = []

  @Option(help: "How long a shutdown waits for open streams. (default: 5s)")
  var shutdownTimeout: String?

  @Option(help: "How log lines are written: text or json. (default: text)")
  var logFormat: String?

  @Option(
    help:
      "The least important log lines: trace, debug, info, notice, warning or error. (default: \(Command.shownDefaults.logLevel))"
  )
  var logLevel: String?

  @Flag(name: .customLong("no-magic-tokens"), help: "Take device tokens that ask for an outcome for ordinary ones.")
  var noMagicTokens = false

  @Option(
    help: "A YAML file with settings: the names of these flags with _ for -, and apns: for the numbers of the rules.")
  var config: String?

  // Not a setting: what many servers call the flag, so that the error names the right one.
  @Option(help: .hidden)
  var port: String?

  func validate() throws {
    guard let port else { return }
    let address = Int(port).map { "127.0.0.1:\($0)" } ?? "HOST:PORT"
    throw ValidationError("Unknown option '--port'. Did you mean '--apns \(address)'?")
  }

  /// The values of the flags that were given.
  var given: [Setting: [String]] {
    let lists: [(Setting, [String])] = [
      (.apns, apns), (.san, san), (.allowHost, allowHost), (.clientCA, clientCA),
    ]
    let texts: [(Setting, String?)] = [
      (.admin, admin), (.certs, certs), (.profiles, profiles), (.profile, profile), (.seed, seed),
      (.environment, environment), (.rules, rules),
      (.maxRecords, maxRecords), (.maxBytes, maxBytes), (.threads, threads), (.portFile, portFile),
      (.adminToken, adminToken), (.shutdownTimeout, shutdownTimeout), (.logFormat, logFormat), (.logLevel, logLevel),
      (.magicTokens, noMagicTokens ? "off" : nil), (.exportOnExit, exportOnExit),
    ]
    var given: [Setting: [String]] = [:]
    for (setting, values) in lists where !values.isEmpty { given[setting] = values }
    for (setting, value) in texts { given[setting] = value.map { [$0] } }
    return given
  }
}
