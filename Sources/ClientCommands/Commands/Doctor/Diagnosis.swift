import MockAPNS
import APNSMockNotation

/// The checks of `doctor` in order.
enum DoctorCheck: String, CaseIterable, Sendable {
  /// The host name resolves to addresses.
  case resolve
  /// One of the addresses accepts a TCP connection.
  case connect
  /// The TLS handshake succeeds.
  case tls
  /// The certificate is issued by the trusted CA and is in its validity period.
  case chain
  /// The certificate contains the server's name.
  case name
  /// ALPN selects HTTP/2.
  case alpn
  /// The first SETTINGS are those of APNs.
  case settings
  /// Server, provider token and this machine agree on the time.
  case clock
  /// A push is accepted.
  case push

  /// The name in the report.
  var title: String {
    switch self {
    case .resolve: "DNS"
    case .connect: "TCP"
    case .tls: "TLS"
    case .chain: "chain"
    case .name: "name"
    case .alpn: "ALPN"
    case .settings: "SETTINGS"
    case .clock: "clock"
    case .push: "push"
    }
  }
}

/// One step of `doctor`: performs a check with the observations of the steps before it and adds its own.
struct Probe: Sendable {
  /// The outcome of a probe, with the observation or, if it was skipped, the reason.
  enum Outcome: Sendable, Equatable {
    case passed(String)
    case failed(String, repair: String)
    case skipped(String)
  }

  let check: DoctorCheck
  /// Whether the probes after this one are impossible if it fails.
  var isRequired = false
  let run: @Sendable (inout Diagnosis) async throws -> Outcome

  /// All probes in order.
  static let all = [
    Probe(check: .resolve, isRequired: true) { await $0.resolve() },
    Probe(check: .connect, isRequired: true) { try await $0.connect() },
    Probe(check: .tls, isRequired: true) { await $0.checkTLS() },
    Probe(check: .chain) { $0.checkChain() },
    Probe(check: .name) { $0.checkName() },
    Probe(check: .alpn) { $0.checkProtocol() },
    Probe(check: .settings) { $0.checkSettings() },
    Probe(check: .clock) { $0.checkClocks(now: ServerClock().now) },
    Probe(check: .push) { $0.checkPush() },
  ]
}

/// The server that `doctor` examines as a provider would use it, and the observations so far.
struct Diagnosis: Sendable {
  /// The listener for providers.
  var endpoint: MockServer.Endpoint
  /// The name expected in the server's certificate.
  var serverName: String
  /// The path of the CA to trust; nil if there is none.
  var authority: String?
  /// The credential to push with; nil if there is none.
  var credential: Credential?
  /// The topic to push to.
  var topic: String
  /// The server's admin API data, if it is reachable.
  var known: ServerDetails?
  /// The total time limit for one connection.
  var timeout = Duration.seconds(5)

  /// The addresses of the host; empty before they are resolved.
  var addresses: [String] = []
  /// The observations on the connection, over which a push was sent if there is a credential.
  var connection = ProbeResult(pushes: 0)
  /// The results of the checks so far.
  private(set) var results: [CheckResult] = []

  /// Runs all probes and records their results in order. If a required probe fails, the remaining ones are skipped.
  ///
  /// - Throws: `TLSError` for invalid certificate files.
  mutating func run() async throws {
    var failed: DoctorCheck?
    for probe in Probe.all {
      if let failed {
        results.append(CheckResult(probe.check, .skipped("skipped because \(failed.title) failed")))
        continue
      }
      let result = CheckResult(probe.check, try await probe.run(&self))
      results.append(result)
      if probe.isRequired, result.status == .failed { failed = probe.check }
    }
  }

  /// Returns the result of an earlier check.
  func result(of check: DoctorCheck) -> CheckResult? { results.first { $0.check == check } }
}

/// The result of one check.
struct CheckResult: Sendable, Equatable {
  enum Status: String, Sendable {
    case passed, failed, skipped
  }

  let check: DoctorCheck
  let status: Status
  /// The observation; for a skipped check, the reason.
  let seen: String
  /// The advice for a failed check.
  let repair: String?

  /// Creates the result from the outcome of a probe, whose texts can quote the server.
  init(_ check: DoctorCheck, _ outcome: Probe.Outcome) {
    self.check = check
    switch outcome {
    case .passed(let seen): (status, self.seen, repair) = (.passed, seen.onOneLine, nil)
    case .failed(let seen, let repair):
      (status, self.seen, self.repair) = (.failed, seen.onOneLine, repair.onOneLine)
    case .skipped(let reason): (status, seen, repair) = (.skipped, reason.onOneLine, nil)
    }
  }

  /// Returns the result for people: one line, and a second one for the repair.
  func text(colored: Bool) -> String {
    let width = DoctorCheck.allCases.map(\.title.count).max() ?? 0
    let title = check.title + String(repeating: " ", count: width - check.title.count)
    let mark =
      switch status {
      case .passed: colored ? Color.green.around("✓") : "✓"
      case .failed: colored ? Color.red.around("✗") : "✗"
      case .skipped: "–"
      }
    let repair = repair.map { "\n  \(String(repeating: " ", count: width))  → \($0)" } ?? ""
    return "\(mark) \(title)  \(seen)\(repair)"
  }

  /// Writes the result as JSON members.
  func write(to writer: inout JSONWriter) {
    writer.member("check", check.rawValue)
    writer.member("result", status.rawValue)
    writer.member("seen", seen)
    writer.member("repair", repair)
  }
}
