package import ArgumentParser
import APNSMockFaultModel
import APNSMockFaults
import APNSMockNotation
import APNSMockPushQuery

/// An option that a command does not have, with what was probably meant.
package struct UnknownOption {
  /// The option as it was written, such as `--since` or `-n`.
  private let written: String
  /// The option's name without hyphens in front, in lowercase.
  private let name: String
  /// The value that follows it, if any.
  private let value: String?
  /// The arguments of the program.
  private let arguments: [String]
  /// The names of the command and its parents, without the program's own.
  private let path: [String]
  /// The names of the command's options, without hyphens in front.
  private let options: [String]

  /// Finds the unknown option to which a message of the parser refers; nil if it refers to something else.
  ///
  /// The parser reports a missing argument before an unknown option. The option is named in its place: it is often the cause.
  ///
  /// - Parameters:
  ///   - message: The parser's message: the error, the usage and where to find help.
  ///   - arguments: The arguments of the program.
  ///   - root: The root command.
  package init?(in message: String, arguments: [String], of root: any ParsableCommand.Type) {
    var command = root
    var path: [String] = []
    for word in arguments {
      let next = command.configuration.subcommands.first {
        $0.configuration.commandName == word || $0.configuration.aliases.contains(word)
      }
      guard let next else { break }
      command = next
      path.append(word)
    }
    if path.isEmpty, let standard = root.configuration.defaultSubcommand { command = standard }
    let options = command.helpMessage(columns: 200).matches(of: /(?m)^  (?:-[a-zA-Z], )?--([a-z0-9-]+)/)
      .map { String($0.1) }
    let flags = arguments.dropFirst(path.count).prefix { $0 != "--" }
    let written: String
    if let match = message.prefixMatch(of: /Error: Unknown option '(-[^']+)'/) {
      written = String(match.1)
      guard !written.hasPrefix("--") || !options.contains(Self.name(of: written)) else { return nil }
    } else if message.hasPrefix("Error: Missing expected argument"),
      let flag = flags.first(where: { $0.hasPrefix("--") && !options.contains(Self.name(of: $0)) })
    {
      written = String(flag.prefix { $0 != "=" })
    } else {
      return nil
    }
    self.written = written
    self.arguments = arguments
    self.path = path
    self.options = options
    name = Self.name(of: written).lowercased()
    let index = flags.firstIndex { $0 == written || $0.hasPrefix("\(written)=") }
    value = index.flatMap { index in
      let parts = arguments[index].split(separator: "=", maxSplits: 1)
      if parts.count == 2 { return String(parts[1]) }
      return index + 1 < flags.endIndex ? flags[index + 1] : nil
    }
  }

  private static func name(of flag: String) -> String {
    String(flag.drop { $0 == "-" }.prefix { $0 != "=" })
  }

  /// Returns the parser's message with the suggestion of this program in place of the parser's, which compares letters only.
  package func message(_ message: String) -> String {
    let usage = message.firstRange(of: "\nUsage:").map { message[$0.lowerBound...] } ?? ""
    return "error: Unknown option '\(written)'" + (suggestion.map { ". \($0)" } ?? "") + usage
  }

  /// What to write instead, as a sentence; nil if nothing resembles the option.
  package var suggestion: String? {
    if let condition { return "A condition is an argument without --: \(condition)" }
    if let parameter = parameter(isNamed: true) { return parameter }
    if let advice { return advice }
    let flag = synonym ?? (name.count > 2 ? Spelling.nearest(to: name, among: options) : nil)
    return flag.map { "Did you mean '--\($0)\(port(of: $0))'?" } ?? parameter(isNamed: false)
  }

  /// The condition that the option is for a command with a query: `since:-5m` for `--since -5m`.
  private var condition: String? {
    let filtering: [any ParsableCommand.Type] = [
      ListCommand.self, RemoveCommand.self, ExportCommand.self, TailCommand.self, WaitCommand.self,
      FindingsCommand.self,
    ]
    let field = name.replacing("-", with: "_")
    guard filtering.contains(where: { [$0.configuration.commandName] == path }), QueryField(named: field) != nil else {
      return nil
    }
    return "\(field):\(value ?? "VALUE")".shellQuoted
  }

  /// Returns how to set the parameter of a profile that is named in the arguments.
  ///
  /// - Parameter isNamed: Whether the parameter must be one of a built-in profile. If not, nothing is known of the profile, so
  ///   that any word can be a parameter.
  private func parameter(isNamed: Bool) -> String? {
    if path == ["profile", "set"], !isNamed {
      return "A parameter is an argument without --: \(name)=\(value ?? "VALUE")"
    }
    let text =
      [["profile", "use"], ["profile", "simulate"]].contains(path)
      ? arguments.dropFirst(path.count).first { !$0.hasPrefix("-") }
      : zip(arguments, arguments.dropFirst()).first { $0.0 == "--profile" }?.1
    guard let text, let reference = try? ProfileReference(argument: text) else { return nil }
    if isNamed {
      guard case .name(let profile) = reference.place,
        let known = try? ProfileLibrary().profile(named: profile).profile,
        known.parameters.contains(where: { $0.name == name })
      else { return nil }
    } else if path.first != "profile" {
      return nil
    }
    let separator = text.contains("?") ? "&" : "?"
    return "A parameter of the profile follows its name: '\(text)\(separator)\(name)=\(value ?? "VALUE")'"
  }

  /// Advice for options of other tools that are something else here.
  private var advice: String? {
    let word = Self.compact(name)
    func isOne(of names: String) -> Bool { names.split(separator: " ").contains { $0 == word } }
    if path == ["send"], isOne(of: "header headers h") {
      return
        "Header fields have options of their own: --topic, --push-type, --priority, --id, --expiration, --collapse-id"
    }
    if path == ["send"], isOne(of: "token devicetoken device registrationtoken to t") {
      return "The device token is an argument without --: apns-mock send \((value ?? "TOKEN").shellQuoted)"
    }
    if path == ["send"], isOne(of: "env environment sandbox production development dev prod") {
      return "The environment is that of the server's address: choose it with --apns HOST:PORT"
    }
    if options.contains("ca"), isOne(of: "insecure k noverify skipverify noverifyssl") {
      return "The server's certificate is always verified: '--ca FILE' trusts another CA"
    }
    if options.contains("key"), isOne(of: "password pass passphrase passin") {
      return "Keys must not be encrypted: openssl pkey -in FILE -out decrypted.p8"
    }
    if options.contains("apns"), isOne(of: "http2 http2priorknowledge") { return "HTTP/2 is always used: omit it" }
    guard isOne(of: "follow f watch") else { return nil }
    return switch path {
    case ["ls"]: "apns-mock tail prints pushes as they arrive"
    case ["tail"]: "apns-mock tail always follows: omit it"
    default: nil
    }
  }

  /// The option of the command that other tools call so.
  private var synonym: String? {
    var word = Self.compact(name)
    if word.hasPrefix("apns"), word != "apns" { word = String(word.dropFirst(4)) }
    if let same = options.first(where: { Self.compact($0) == word }) { return same }
    return Self.otherNames.first { options.contains($0.option) && $0.names.contains(word) }?.option
  }

  /// Returns the address for an option that is a port elsewhere, with a space in front.
  private func port(of option: String) -> String {
    guard name == "p" || name.hasSuffix("port"), ["apns", "admin", "manage", "apns-plain"].contains(option) else {
      return ""
    }
    return value.flatMap { Int($0) }.map { " 127.0.0.1:\($0)" } ?? " HOST:PORT"
  }

  private static func compact(_ name: String) -> String { name.filter { $0 != "-" && $0 != "_" } }

  /// Options with the names that curl, openssl, provider libraries and other servers have for them, without hyphens. The first
  /// row whose option the command has counts.
  private static let otherNames: [(option: String, names: Set<String>)] = [
    ("ca", "cacert cacerts cafile capath rootca rootcas truststore tlsca"),
    ("client-ca", "cacert cacerts cafile rootca tlsca clientcas"),
    ("upstream-ca", "cacert cacerts cafile rootca tlsca"),
    ("cert", "certificate clientcert clientcertificate certfile certpath pem pfx p12 e"),
    ("certificate", "cert clientcert certfile certpath pem pfx p12 e"),
    ("cert-key", "certificatekey clientkey clientcertkey"),
    ("certificate-key", "certkey clientkey"),
    ("key", "keyfile keypath p8 authkey authkeyfile privatekey signingkey inkey tokenkey"),
    ("certs", "certdir certsdir certfolder tls tlsdir tlscert tlskey cert key certfile keyfile"),
    ("key-id", "kid keyidentifier authkeyid"),
    ("team-id", "team tid iss issuer teamidentifier"),
    ("payload", "data body json message content notification alert text file d databinary dataraw input in"),
    ("topic", "bundle bundleid bundleidentifier app appid"),
    ("push-type", "type"),
    ("priority", "prio"),
    ("id", "uuid notificationid messageid channelid"),
    ("expiration", "expiry expires expire exp ttl timetolive"),
    ("collapse-id", "collapse collapsekey collapseidentifier"),
    ("timeout", "maxtime maxwait wait deadline m connecttimeout"),
    ("limit", "n lines number max head last count tail"),
    ("count", "n number times limit c"),
    ("pushes", "n number count requests"),
    ("apns", "host hostname server url address addr endpoint connect gateway port p listen bind"),
    ("admin", "host hostname server url address addr endpoint port p adminport uiport httpport apiport base baseurl"),
    ("admin-token", "token password apikey auth user u bearer"),
    ("output", "o out outfile outputfile file destination html htmlreport"),
    ("report", "output o out html htmlreport"),
    ("json", "o output format outputformat"),
    ("config", "configfile c settings f"),
    ("log-level", "verbose v debug quiet q silent loglevel verbosity"),
    ("store", "db database databaseurl sqlite postgres postgresql storage persist data datadir volume"),
    ("upstream", "forward relay target backend remote proxyto"),
    ("profile", "fault faults scenario chaos"),
    ("fault", "status reason action"),
    ("often", "rate probability trigger"),
    ("environment", "env"),
    ("san", "servername altname hostnames"),
    ("ttl", "for duration expires expire"),
    ("scope", "filter query where q match"),
    ("junit", "junitxml xml junitfile"),
    ("wait", "w block"),
    ("all", "force f yes y"),
    ("webhook", "hook callback webhookurl notify"),
    ("max-records", "capacity maxpushes maxmessages"),
  ].map { ($0.0, Set($0.1.split(separator: " ").map(String.init))) }
}
