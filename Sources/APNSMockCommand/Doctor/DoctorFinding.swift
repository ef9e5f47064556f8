import Notation

/// The checks of `doctor` in order: each check requires the ones before it.
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

/// The result of one check.
struct DoctorFinding: Sendable, Equatable {
  /// The outcome of a check.
  enum Result: String, Sendable {
    case passed, failed, skipped
  }

  let check: DoctorCheck
  let result: Result
  /// The observation; for a skipped check, the reason.
  let seen: String
  /// The advice for a failed check.
  let repair: String?

  /// Returns the result of a passed check.
  static func passed(_ check: DoctorCheck, _ seen: String) -> DoctorFinding {
    DoctorFinding(check: check, result: .passed, seen: seen.onOneLine, repair: nil)
  }

  /// Returns the result of a failed check.
  static func failed(_ check: DoctorCheck, _ seen: String, repair: String) -> DoctorFinding {
    DoctorFinding(check: check, result: .failed, seen: seen.onOneLine, repair: repair.onOneLine)
  }

  /// Returns the result of a check that was impossible or unnecessary.
  static func skipped(_ check: DoctorCheck, _ why: String) -> DoctorFinding {
    DoctorFinding(check: check, result: .skipped, seen: why.onOneLine, repair: nil)
  }

  /// Returns the result for people: one line, and a second one for the repair.
  func text(coloured: Bool) -> String {
    let width = DoctorCheck.allCases.map(\.title.count).max() ?? 0
    let title = check.title + String(repeating: " ", count: width - check.title.count)
    let mark =
      switch result {
      case .passed: coloured ? Colour.green.around("✓") : "✓"
      case .failed: coloured ? Colour.red.around("✗") : "✗"
      case .skipped: "–"
      }
    let repair = repair.map { "\n  \(String(repeating: " ", count: width))  → \($0)" } ?? ""
    return "\(mark) \(title)  \(seen)\(repair)"
  }

  /// Writes the result as JSON members.
  func write(to writer: inout JSONWriter) {
    writer.member("check", check.rawValue)
    writer.member("result", result.rawValue)
    writer.member("seen", seen)
    writer.member("repair", repair)
  }
}
