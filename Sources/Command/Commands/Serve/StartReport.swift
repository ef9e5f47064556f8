import APNSMockAdminAPI
import APNSMockRules
import APNSMockClientCommands
import APNSMockDevices
import Logging
import MockAPNS
import APNSMockNotation

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
  private var profile: FaultSelection { state.faults.selection }

  /// The number of devices; empty without any.
  private var devices: String {
    let (devices, tokens) = state.devices.counts
    return devices == 0 ? "" : "\(devices) with \(tokens) device tokens"
  }

  private var metadata: Logger.Metadata {
    var metadata: Logger.Metadata = [
      "apns": .array(state.apnsAddresses.map { .string($0.description) }),
      "ca": .string(state.certificates.caPath), "environment": .string(state.configuration.environment.rawValue),
      "rules": .string(state.configuration.rules.rawValue), "seed": .string(String(state.seed)),
      "profile": .string(profile.selectedProfile.reference), "profile_seed": .string(String(profile.seed)),
    ]
    for (name, kind) in [("apns_plain", ListenerKind.cleartext), ("manage", .management)] {
      let addresses = state.listeners.filter { $0.kind == kind }.map(\.endpoint.description)
      if !addresses.isEmpty { metadata[name] = .array(addresses.map { .string($0) }) }
    }
    if let proxy = state.listeners.first(where: { $0.kind == .connectProxy }) {
      metadata["proxy"] = .string(proxy.endpoint.description)
    }
    if let upstream = state.upstream { metadata["upstream"] = .string(upstream.settings.description) }
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
      ("APNs", addresses("https") { $0.isAPNs }), ("plain", addresses("http") { $0 == .cleartext }),
      ("proxy", addresses("http", note: "for Apple's push hosts") { $0 == .connectProxy }),
      ("channels", addresses("https") { $0 == .management }),
      ("admin", state.adminAddress.map { "http://\($0)" } ?? "none"),
      ("CA", certificates.caPath),
      ("key", "\(CertificateFolder.keyID) of team \(CertificateFolder.teamID): \(certificates.providerKeyPath)"),
      ("environment", state.configuration.environment.rawValue),
      ("rules", state.configuration.rules.rawValue),
      ("profile", "\(profile.selectedProfile.reference), seed \(profile.seed)"),
      ("seed", String(state.seed)),
      ("devices", devices),
      ("upstream", state.upstream.map { "pushes are forwarded to \($0.settings.description)" } ?? ""),
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

  /// Returns the addresses of listeners, with an environment that is not the one of the row `environment`.
  private func addresses(_ scheme: String, note: String? = nil, _ isIncluded: (ListenerKind) -> Bool) -> String {
    state.listeners.filter { isIncluded($0.kind) }.map { listener in
      let isOther = listener.environment != state.configuration.environment
      let notes = [note, isOther ? "(\(listener.environment.rawValue))" : nil].compactMap(\.self)
      return (["\(scheme)://\(listener.endpoint)"] + notes).joined(separator: " ")
    }
    .joined(separator: "  ")
  }

  /// Returns a curl command that works in any shell and folder.
  private func curl(program: String) -> String {
    let endpoint = (state.apnsAddresses.first ?? MockServer.Endpoint(host: "localhost", port: 0)).reachable
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
    guard let admin = state.adminAddress, admin != MockServer.Configuration().admin else { return "" }
    return " --admin \(admin.reachable)"
  }
}
