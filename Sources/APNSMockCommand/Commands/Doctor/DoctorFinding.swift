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

/// Checks that the server's clock, this machine's clock and the provider token's issue time agree.
struct ClockFinding {
  /// The server's admin API data, if it is reachable.
  let known: KnownServer?
  /// The provider token, if there is one.
  let credential: Credential?
  /// This machine's time, in milliseconds since 1970.
  let now: Int64

  /// The largest acceptable difference in milliseconds; the future allowance of the rule mode `strict`.
  private static let tolerance: Int64 = 300_000
  /// How long APNs accepts a provider token (Protocol.md, section 3.2, documented).
  private static let tokenLife: Int64 = 3_600_000
  /// Distinguishes the units: seconds since 1970 are below this until the year 5138, milliseconds above it since 1973.
  private static let secondsLimit = 1e11

  /// The server's time if known, else this machine's.
  private var judgingTime: Int64 { now + (known?.clockAhead ?? 0) }

  var finding: DoctorFinding {
    if case .token(_, let token) = credential, let issuedAt = token.issuedAt, let finding = wrong(issuedAt) {
      return finding
    }
    guard let known else {
      return .skipped(.clock, "the server's time is unknown without its admin API (--admin HOST:PORT)")
    }
    let state = known.isFrozen ? " and frozen" : ""
    guard abs(known.clockAhead) > Self.tolerance else {
      return .passed(.clock, "the server's clock is \(Self.text(known.clockAhead)) off\(state)")
    }
    return .failed(
      .clock,
      "the server's clock is \(Self.text(known.clockAhead)) \(known.clockAhead > 0 ? "ahead" : "behind")\(state)",
      repair: Self.clockRepair(known))
  }

  private static func clockRepair(_ known: KnownServer) -> String {
    "if it was changed: apns-mock clock real --admin \(known.admin); else set this machine's clock or the server's (NTP)"
  }

  /// Returns the failure for a token's issue time; nil if it is acceptable.
  private func wrong(_ issuedAt: Double) -> DoctorFinding? {
    guard abs(issuedAt) < Self.secondsLimit else {
      return .failed(
        .clock, "the provider token's iat is \(Int64(clamping: issuedAt)), a time in milliseconds",
        repair: "the provider must write iat in seconds since 1970")
    }
    let age = judgingTime - Int64(issuedAt * 1000)
    guard age > Self.tokenLife || age < -Self.tolerance else { return nil }
    let clock = known == nil ? "by this machine's clock" : "by the server's clock"
    let seen =
      age > 0
      ? "the provider token was issued \(Self.text(age)) ago \(clock)"
      : "the provider token was issued \(Self.text(age)) in the future \(clock)"
    if let known, abs(known.clockAhead) > Self.tolerance {
      return .failed(
        .clock, "\(seen), which is \(Self.text(known.clockAhead)) \(known.clockAhead > 0 ? "ahead" : "behind")",
        repair: Self.clockRepair(known))
    }
    return .failed(
      .clock, seen,
      repair: age > 0
        ? "sign a new token every 20 to 60 minutes; APNs accepts a token for one hour"
        : "set the clock of the machine that signed it (NTP)")
  }

  /// Returns an absolute duration: to the millisecond below one minute, else to the nearest second.
  private static func text(_ milliseconds: Int64) -> String {
    let distance = abs(milliseconds)
    return DurationFormat.text(.milliseconds(distance < 60_000 ? distance : (distance + 500) / 1000 * 1000))
  }
}

extension Int64 {
  /// The nearest representable integer.
  fileprivate init(clamping value: Double) {
    self = Int64(exactly: value.rounded()) ?? (value < 0 ? .min : .max)
  }
}
