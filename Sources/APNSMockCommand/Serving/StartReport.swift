import APNSRules
import Logging
import MockAPNS
import Notation

/// What `serve` says when it is ready: where everything is, and the next thing to type.
struct StartReport {
  let state: ServerState
  let settings: ServeSettings

  /// Says it on standard error, in words or, where logs are JSON, as one log line.
  func announce(logger: Logger) {
    switch settings.logFormat {
    case .text: StandardStream.error.line(text(program: Self.program))
    case .json:
      logger.info("ready", metadata: metadata)
    }
  }

  /// Warns of an admin listener that strangers can use.
  func warn(logger: Logger) {
    if let admin = state.adminAddress, !admin.isLoopback, state.configuration.adminToken == nil {
      logger.warning(
        """
        the admin listener \(admin) can be reached from other machines and asks for no token: anybody there can read and \
        remove pushes; set one with --admin-token auto
        """)
    }
  }

  /// The fault profile in force, with its seed.
  private var profile: FaultControl.Selection { state.faults.selection }

  private var metadata: Logger.Metadata {
    var metadata: Logger.Metadata = [
      "apns": .array(state.apnsAddresses.map { .string($0.description) }),
      "ca": .string(state.certificates.caPath), "environment": .string(state.configuration.environment.rawValue),
      "rules": .string(state.configuration.rules.rawValue), "seed": .string(String(state.seed)),
      "profile": .string(profile.chosen.reference), "profile_seed": .string(String(profile.seed)),
    ]
    if let admin = state.adminAddress { metadata["admin"] = .string(admin.description) }
    if let untoldToken { metadata["admin_token"] = .string(untoldToken) }
    return metadata
  }

  /// How a shell calls this program: as it was called, but from any folder.
  private static var program: String {
    let name = CommandLine.arguments.first ?? "apns-mock"
    return name.contains("/") ? Files.absolute(name).shellQuoted : name
  }

  /// The words.
  ///
  /// - Parameter program: how a shell calls this program.
  func text(program: String) -> String {
    let certificates = state.certificates
    var rows = [
      ("APNs", state.apnsAddresses.map { "https://\($0)" }.joined(separator: "  ")),
      ("admin", state.adminAddress.map { "http://\($0)" } ?? "none"),
      ("CA", certificates.caPath),
      ("key", "\(CertificateFolder.keyID) of team \(CertificateFolder.teamID): \(certificates.providerKeyPath)"),
      ("environment", state.configuration.environment.rawValue),
      ("rules", state.configuration.rules.rawValue),
      ("profile", "\(profile.chosen.reference), seed \(profile.seed)"),
      ("seed", String(state.seed)),
    ]
    if let untoldToken { rows.insert(("admin token", untoldToken), at: 2) }
    let table = rows.map { name, value in "  \(name)\(String(repeating: " ", count: 13 - name.count))\(value)\n" }
      .joined()
    return """
      apns-mock \(Version.text) is ready.
      \(table)
      Push something, then look at it:

      \(curl(program: program))

        \(untoldToken.map { "\(Setting.adminToken.variable)=\($0) " } ?? "")\(program) ls\(adminFlag)

      """
  }

  /// A push by curl that works when it is pasted into any shell, in any folder.
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

  /// A token that was made up and that no port file tells: it has to be shown here.
  private var untoldToken: String? {
    settings.drawsAdminToken && settings.portFile == nil ? state.configuration.adminToken : nil
  }

  /// How the client commands find this server, if not by themselves.
  private var adminFlag: String {
    if let portFile = settings.portFile { return " --port-file \(Files.absolute(portFile).shellQuoted)" }
    guard let admin = state.adminAddress, admin != Configuration().admin else { return "" }
    return " --admin \(admin.reachable)"
  }
}
