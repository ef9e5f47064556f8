import Notation

/// Whether the times fit together by which a provider token is judged.
struct ClockFinding {
  /// What the server's admin API says, if it is reached.
  let known: KnownServer?
  /// The provider token, if there is one.
  let credential: Credential?
  /// This machine's time, in milliseconds since 1970.
  let now: Int64

  /// What `strict` allows of the future, and less than any provider should be off (CONTRACT.md, "Rules").
  private static let tolerance: Int64 = 300_000
  /// How long APNs takes a provider token (APNS.md section 3.2, documented).
  private static let tokenLife: Int64 = 3_600_000
  /// Seconds since 1970 are below this until the year 5138; milliseconds have been above it since 1973.
  private static let secondsLimit = 1e11

  /// The server's time as far as it is known, else this machine's.
  private var judgingTime: Int64 { now + (known?.clockAhead ?? 0) }

  var finding: DoctorFinding {
    if case .token(_, let token) = credential, let issuedAt = token.issuedAt, let finding = wrong(issuedAt) {
      return finding
    }
    guard let known else {
      return .skipped(.clock, "no admin API tells the server's time (--admin HOST:PORT names one)")
    }
    let state = known.isFrozen ? ", and stands still" : ""
    guard abs(known.clockAhead) > Self.tolerance else {
      return .passed(.clock, "the server's differs from this machine's by \(Self.text(known.clockAhead))\(state)")
    }
    return .failed(
      .clock,
      "the server's clock is \(Self.text(known.clockAhead)) \(known.clockAhead > 0 ? "ahead" : "behind")\(state)",
      repair: Self.clockRepair(known))
  }

  private static func clockRepair(_ known: KnownServer) -> String {
    "if it was moved: apns-mock clock real --admin \(known.admin); else set this machine's clock, or the server's (NTP)"
  }

  /// What is wrong with the time of a token.
  private func wrong(_ issuedAt: Double) -> DoctorFinding? {
    guard abs(issuedAt) < Self.secondsLimit else {
      return .failed(
        .clock, "the provider token's iat is \(Int64(clamping: issuedAt)), a time in milliseconds",
        repair: "let the provider write iat in seconds since 1970")
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
        ? "let the provider sign a new one, each 20 to 60 minutes; APNs takes one for an hour"
        : "set the clock of the machine that signed it (NTP)")
  }

  /// A distance in time, without its sign; below a minute to the millisecond, from there to the nearest second.
  private static func text(_ milliseconds: Int64) -> String {
    let distance = abs(milliseconds)
    return WrittenDuration.text(.milliseconds(distance < 60_000 ? distance : (distance + 500) / 1000 * 1000))
  }
}

extension Int64 {
  /// The nearest whole number there is.
  fileprivate init(clamping value: Double) {
    self = Int64(exactly: value.rounded()) ?? (value < 0 ? .min : .max)
  }
}
