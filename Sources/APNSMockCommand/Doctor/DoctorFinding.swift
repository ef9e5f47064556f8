import Notation

/// What `doctor` looks at, in its order: each check needs the ones before it.
enum DoctorCheck: String, CaseIterable, Sendable {
  /// The host's name leads to addresses.
  case resolve
  /// One of them takes a TCP connection.
  case connect
  /// What answers there is TLS.
  case tls
  /// Its certificate comes from the trusted CA, and is in time.
  case chain
  /// The certificate bears the server's name.
  case name
  /// HTTP/2 is agreed on.
  case alpn
  /// The first SETTINGS are those of APNs.
  case settings
  /// Server, provider token and this machine agree on the time.
  case clock
  /// A push is accepted.
  case push

  /// What it is called in the report.
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

/// What came of one check.
struct DoctorFinding: Sendable, Equatable {
  /// How it went.
  enum Result: String, Sendable {
    case passed, failed, skipped
  }

  let check: DoctorCheck
  let result: Result
  /// What was seen; for a check that was skipped, why.
  let seen: String
  /// What to do about it, if it failed.
  let repair: String?

  /// All is well.
  static func passed(_ check: DoctorCheck, _ seen: String) -> DoctorFinding {
    DoctorFinding(check: check, result: .passed, seen: seen.onOneLine, repair: nil)
  }

  /// Something is wrong.
  static func failed(_ check: DoctorCheck, _ seen: String, repair: String) -> DoctorFinding {
    DoctorFinding(check: check, result: .failed, seen: seen.onOneLine, repair: repair.onOneLine)
  }

  /// There was no way, or no need, to look.
  static func skipped(_ check: DoctorCheck, _ why: String) -> DoctorFinding {
    DoctorFinding(check: check, result: .skipped, seen: why.onOneLine, repair: nil)
  }

  /// For people: a line, and another one for the repair.
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

  /// Writes its members.
  func write(to writer: inout JSONWriter) {
    writer.member("check", check.rawValue)
    writer.member("result", result.rawValue)
    writer.member("seen", seen)
    writer.member("repair", repair)
  }
}
