import APNSMockRules
import ArgumentParser
package import MockAPNS
import APNSMockNotation
import APNSMockTLSEngine

/// `apns-mock compare`
struct CompareCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compare", abstract: "Send harmless probes to APNs and to this mock, and show where they differ.",
    discussion: """
      Each probe is a request that APNs rejects and no device receives: a wrong header value, a wrong topic, a body that \
      is too large. At most 5 requests a second, on one connection, with one provider token.

      --report writes the answers without secrets: the key id, the team id, topics and tokens are replaced. Attach the \
      file to an issue. --import prints such a file and connects to nothing.

      Exit code 0 if all answers agree, 1 if some differ.
      """)

  @Option(
    name: .long, help: .value("sandbox|production|url", "The service: sandbox, production or https://HOST:PORT."),
    completion: .list(["sandbox", "production", "https://"]))
  var upstream: String?

  @Option(
    name: .customLong("upstream-ca"),
    help: .value("file", "A PEM file with the CA of --upstream, instead of the system's; repeatable."),
    completion: .file())
  var upstreamCA: [String] = []

  @Option(
    name: .long, help: .value("file", "The key that signs the provider token, AuthKey_….p8."), completion: .file())
  var key: String?

  @Option(name: .long, help: .value("id", "The key id. (default: from the file name)"))
  var keyID: String?

  @Option(name: .long, help: .value("id", "The team id."))
  var teamID: String?

  @Option(name: .long, help: .value("file", "A provider certificate in PEM, instead of --key."), completion: .file())
  var certificate: String?

  @Option(name: .long, help: .value("file", "The private key of --certificate, in PEM."), completion: .file())
  var certificateKey: String?

  @Option(name: .long, help: .value("topic", "A bundle id that the credential permits."))
  var topic: String?

  @Option(
    name: .long,
    help: .value("token", "The token of a device that may get background pushes, for the probes that need one."))
  var deviceToken: String?

  @Flag(
    name: .long,
    help:
      "Send also malformed provider tokens, each on a connection of its own. Many of them can block the team for a time."
  )
  var probeTokens = false

  @Option(name: .long, help: .value("pattern", "Send only the probes with this name, such as 'apns-id/*'; repeatable."))
  var only: [String] = []

  @Flag(name: .long, help: "Print the probes and send nothing.")
  var dryRun = false

  @Option(
    name: .long, help: .value("file", "Write the answers to this file, as JSON without secrets."), completion: .file())
  var report: String?

  @Option(
    name: .customLong("import"), help: .value("file", "Print the answers in a file of --report, and send nothing."),
    completion: .file(extensions: ["json"]))
  var imported: String?

  @OptionGroup var output: OutputFlags

  func validate() throws {
    if imported != nil {
      let others: [(String, Bool)] = [
        ("--upstream", upstream != nil), ("--upstream-ca", !upstreamCA.isEmpty), ("--key", key != nil),
        ("--key-id", keyID != nil), ("--team-id", teamID != nil), ("--certificate", certificate != nil),
        ("--certificate-key", certificateKey != nil), ("--topic", topic != nil),
        ("--device-token", deviceToken != nil), ("--probe-tokens", probeTokens), ("--only", !only.isEmpty),
        ("--dry-run", dryRun), ("--report", report != nil),
      ]
      guard let other = others.first(where: \.1)?.0 else { return }
      throw ValidationError("--import prints a file and sends nothing: omit \(other)")
    }
    if let topic, !topic.withBytes({ BundleID.isWellFormed($0) }) {
      throw ValidationError("--topic: \"\(topic)\" is not a bundle id, such as com.example.app")
    }
    if let deviceToken, !DeviceToken.isWellFormed(deviceToken) {
      throw ValidationError("--device-token: \"\(deviceToken)\" is not a device token, which has hexadecimal digits")
    }
    if certificate != nil, key != nil {
      throw ValidationError("--certificate replaces --key: specify one of them")
    }
  }

  func run() async throws {
    if let imported { return try show(try Evidence(fileAt: imported)) }
    let patterns = only.map { TextPattern($0, foldsCase: true) }
    var probes = ProtocolProbe.all.filter { probe in
      (patterns.isEmpty || patterns.contains { pattern in pattern.matches(probe.name) })
        && (probe.need != .providerTokens || probeTokens) && (probe.need != .device || deviceToken != nil)
        && (certificate == nil || !probe.dependsOnProviderToken)
    }
    guard !probes.isEmpty else { throw CommandFailure(.usage, "no probe is selected: see apns-mock compare --dry-run") }
    if certificate != nil {
      for index in probes.indices { probes[index].fields.removeAll { $0.name == "authorization" } }
    }
    if dryRun { return list(probes) }
    let settings = try upstreamSettings(Environment.variables)
    guard let topic else {
      throw CommandFailure(.usage, "--topic is missing: specify a bundle id that the credential permits")
    }
    // A file that cannot be written is found before anything is sent.
    let file = try report.map { try Files.replacement(of: $0, isPrivate: false) }
    let run = ProbeRun(
      upstream: settings, topic: topic, providerToken: try providerToken() ?? "", deviceToken: deviceToken)
    if probeTokens {
      StandardStream.error.line("malformed provider tokens are sent last: APNs can block the team for a time")
    }
    let evidence = try await run.evidence(of: probes) { done, count in
      guard StandardStream.error.isTerminal, done % 25 == 0 else { return }
      StandardStream.error.line("\(done) of \(count) probes")
    }
    try Files.writing { () throws(FileError) in
      try file?.append(evidence.json + [UInt8(ascii: "\n")])
      try file?.commit()
    }
    try show(evidence)
  }

  private func upstreamSettings(_ environment: [String: String]) throws -> UpstreamSettings {
    guard let upstream else {
      throw CommandFailure(.usage, "--upstream is missing: specify sandbox, production or a URL")
    }
    guard var settings = UpstreamSettings(upstream) else {
      throw CommandFailure(.usage, "--upstream must be sandbox, production or a URL without a path, not \(upstream)")
    }
    guard (certificate == nil) == (certificateKey == nil) else {
      throw CommandFailure(.usage, "--certificate and --certificate-key belong together: specify both")
    }
    settings.authorities = upstreamCA
    settings.connections = 1
    if let certificate, let certificateKey { settings.certificate = (certificate, certificateKey) }
    try settings.prepare(environment)
    return settings
  }

  /// Returns the provider token of all probes; nil with a certificate.
  private func providerToken() throws -> String? {
    guard certificate == nil else { return nil }
    guard let key, let teamID else {
      throw CommandFailure(
        .usage, "specify --key FILE and --team-id ID, or --certificate FILE and --certificate-key FILE")
    }
    guard let keyID = keyID ?? AppleKeyFile.keyID(in: key) else {
      throw CommandFailure(.usage, "--key-id is missing: the name of \(key) is not AuthKey_ID.p8")
    }
    let request = ProviderTokenRequest(keyID: keyID, teamID: teamID, issuedAt: ServerClock().now / 1000)
    return try request.signed(withKeyAt: key)
  }

  private func list(_ probes: [ProtocolProbe]) {
    if output.json {
      for probe in probes { output.print(json: JSONWriter.object { probe.write(to: &$0) }) }
      return
    }
    let table = Table(
      rows: probes,
      columns: [
        .init("PROBE") { $0.name }, .init("EXPECTED") { "\($0.status) \($0.reason?.text ?? "")" },
        .init("SECTION") { $0.fact.section }, .init("FACT") { $0.fact.text },
      ])
    table.print()
  }

  /// Prints the differences and their number.
  ///
  /// - Throws: `ExitCode` if there are any.
  private func show(_ evidence: Evidence) throws {
    let differences = evidence.results.filter(\.isDeviating)
    if output.json {
      output.print(json: evidence.json)
    } else {
      let table = Table(
        rows: differences,
        columns: [
          .init("PROBE") { $0.name }, .init("MOCK") { $0.mock.text }, .init("UPSTREAM") { $0.upstream.text },
          .init("SECTION") { $0.section }, .init("FACT") { $0.fact },
        ])
      if !differences.isEmpty { table.print() }
      StandardStream.output.line(
        "\(evidence.endpoint), \(evidence.date): \(evidence.results.count) answers, \(differences.count) differ"
          + (evidence.stopped.map { "; stopped: \($0)" } ?? ""))
    }
    guard differences.isEmpty, evidence.stopped == nil else { throw ExitCode(ExitStatus.failed.rawValue) }
  }
}

extension ProtocolProbe {
  /// Whether the probe means nothing on a connection with a client certificate, for which provider tokens are ignored.
  fileprivate var dependsOnProviderToken: Bool {
    need == .providerTokens || !fields.contains { $0 == ("authorization", "bearer \(Placeholder.providerToken)") }
  }

  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("probe", name)
    writer.member("section", fact.section)
    writer.member("fact", fact.text)
    writer.member("needs", need.rawValue)
    writer.member("status", status)
    writer.member("reason", reason?.text)
  }
}

extension UpstreamSettings {
  /// Chooses the proxy by `HTTPS_PROXY` and `NO_PROXY`, and reads the files.
  ///
  /// - Throws: `CommandFailure` for unusable files and an unusable `HTTPS_PROXY`.
  package mutating func prepare(_ environment: [String: String]) throws {
    do {
      proxy = try HTTPProxy.chosen(for: endpoint, environment)
      _ = try tlsContext()
    } catch let error as TLSError {
      throw CommandFailure(.usage, "--upstream: \(error)")
    } catch let error as UpstreamError {
      throw CommandFailure(.usage, "\(error)")
    }
  }
}
