import AdminAPI
import APNSRules
import Logging
import MockAPNS
import Notation

/// The message of `serve` when it is ready: addresses, paths and example commands.
struct StartReport {
  let state: ServerState
  let settings: ServeSettings

  /// Writes the message to standard error as text or, with JSON logs, as one log line.
  func announce(logger: Logger) {
    switch settings.logFormat {
    case .text: StandardStream.error.line(text(program: Self.program))
    case .json:
      logger.info("ready", metadata: metadata)
    }
  }

  /// Logs a warning if other machines can use the admin listener without a token.
  func warn(logger: Logger) {
    if let admin = state.adminAddress,
      let warning = AdminServer.openListenerWarning(at: admin, token: state.configuration.adminToken)
    {
      logger.warning("\(warning)")
    }
  }

  /// The active fault profile and its seed.
  private var profile: FaultControl.Selection { state.faults.selection }

  private var metadata: Logger.Metadata {
    var metadata: Logger.Metadata = [
      "apns": .array(state.apnsAddresses.map { .string($0.description) }),
      "ca": .string(state.certificates.caPath), "environment": .string(state.configuration.environment.rawValue),
      "rules": .string(state.configuration.rules.rawValue), "seed": .string(String(state.seed)),
      "profile": .string(profile.chosen.reference), "profile_seed": .string(String(profile.seed)),
    ]
    if !state.apnsPlainAddresses.isEmpty {
      metadata["apns_plain"] = .array(state.apnsPlainAddresses.map { .string($0.description) })
    }
    if let proxy = state.proxyAddress { metadata["proxy"] = .string(proxy.description) }
    if let admin = state.adminAddress { metadata["admin"] = .string(admin.description) }
    if let generatedToken { metadata["admin_token"] = .string(generatedToken) }
    return metadata
  }

  /// The command to run this program from any folder, quoted for a shell.
  private static var program: String {
    let name = CommandLine.arguments.first ?? "apns-mock"
    return name.contains("/") ? Files.absolute(name).shellQuoted : name
  }

  /// Returns the message as text.
  ///
  /// - Parameter program: The command to run this program, quoted for a shell.
  func text(program: String) -> String {
    let certificates = state.certificates
    var rows = [
      ("APNs", state.apnsAddresses.map { "https://\($0)" }.joined(separator: "  ")),
      ("plain", state.apnsPlainAddresses.map { "http://\($0)" }.joined(separator: "  ")),
      ("proxy", state.proxyAddress.map { "http://\($0) for Apple's push hosts" } ?? ""),
      ("admin", state.adminAddress.map { "http://\($0)" } ?? "none"),
      ("CA", certificates.caPath),
      ("key", "\(CertificateFolder.keyID) of team \(CertificateFolder.teamID): \(certificates.providerKeyPath)"),
      ("environment", state.configuration.environment.rawValue),
      ("rules", state.configuration.rules.rawValue),
      ("profile", "\(profile.chosen.reference), seed \(profile.seed)"),
      ("seed", String(state.seed)),
    ]
    if let generatedToken { rows.insert(("admin token", generatedToken), at: 2) }
    let table = rows.filter { !$0.1.isEmpty }.map { name, value in
      "  \(name)\(String(repeating: " ", count: 13 - name.count))\(value)\n"
    }
    .joined()
    return """
      apns-mock \(Version.text) is ready.
      \(table)
      Send a push, then list the inbox:

      \(curl(program: program))

        \(generatedToken.map { "\(Setting.adminToken.variable)=\($0) " } ?? "")\(program) ls\(adminFlag)

      """
  }

  /// Returns a curl command that works in any shell and folder.
  private func curl(program: String) -> String {
    let endpoint = (state.apnsAddresses.first ?? Endpoint(host: "localhost", port: 0)).reachable
    let certificates = state.certificates
    let token = "\(program) token provider --certs \(certificates.path.shellQuoted)"
    return #"""
        curl -i --http2 --cacert \#(certificates.caPath.shellQuoted) \
          -H "authorization: bearer $(\#(token))" \
          -H 'apns-topic: \#(CertificateFolder.topic)' -H 'apns-push-type: alert' \
          -d '{"aps":{"alert":"Hello"}}' \
          https://\#(endpoint)/3/device/\#(String(repeating: "ab12", count: 16))
      """#
  }

  /// The generated admin token, if there is no port file that contains it.
  private var generatedToken: String? {
    settings.generatesAdminToken && settings.portFile == nil ? state.configuration.adminToken : nil
  }

  /// The option that client commands need to locate this server; empty if it has the default address.
  private var adminFlag: String {
    if let portFile = settings.portFile { return " --port-file \(Files.absolute(portFile).shellQuoted)" }
    guard let admin = state.adminAddress, admin != Configuration().admin else { return "" }
    return " --admin \(admin.reachable)"
  }
}
