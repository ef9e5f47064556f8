/// What APNs would say to one push, and why.
public struct Verdict: Sendable {
  /// What the request came with to authenticate itself.
  public enum Credential: UInt8, Sendable {
    /// Neither of the two.
    case none
    /// A provider token, good or bad.
    case token
    /// A client certificate; a provider token beside it is ignored.
    case certificate
  }

  /// 200, or the status of `reason`; 431 where the header list was over the limit.
  public internal(set) var status = 200
  /// Why not; `nil` with 200 and 431.
  public internal(set) var reason: Reason?
  /// The check that failed; `nil` with 200.
  public internal(set) var failed: Check?
  /// Why, in words for people: the value, the rule and what to do about it. Never has a provider token in it.
  public internal(set) var detail = "accepted"
  /// The `timestamp` of a 410, in milliseconds since 1970.
  public internal(set) var timestamp: Int64?
  /// What the request says.
  public internal(set) var facts: PushFacts
  /// The provider token, if one came and was looked at; unchecked where the connection was latched before it.
  public internal(set) var token: ProviderToken?
  /// What the request came with to authenticate itself.
  public internal(set) var credential = Credential.none
  /// The checks such a request goes through under the rules in force, made or not.
  var planned = CheckSet()

  init(facts: PushFacts) { self.facts = facts }

  /// Whether APNs takes the push.
  public var isAccepted: Bool { status == 200 }

  /// The checks that were made, in order, up to the one that failed.
  public var checks: [(check: Check, ok: Bool)] {
    if failed == .headerListSize { return [(.headerListSize, false)] }
    var made: [(check: Check, ok: Bool)] = []
    for check in Check.allCases where planned.contains(check) {
      made.append((check, check != failed))
      if check == failed { break }
    }
    return made
  }

  /// Turns an accepted push into a 429 `TooManyRequests`, when `DeviceRateBuckets` did not admit it: row 19 of APNS.md
  /// section 8.2, the last check, made outside `Rulebook.judge` because its state is shared by all connections.
  public mutating func refuse(over rate: DeviceRate) {
    reject(
      Rejection(
        .deviceRate, .tooManyRequests,
        "more than \(rate.count) pushes within \(rate.per) to this device token: slow down for this device"))
  }

  mutating func reject(_ rejection: Rejection) {
    status = rejection.reason?.status ?? 431
    reason = rejection.reason
    failed = rejection.check
    detail = rejection.detail
    timestamp = rejection.timestamp
  }
}

/// What a failed check throws.
struct Rejection: Error {
  var check: Check
  /// `nil` for the one answer that APNs gives without a reason: 431.
  var reason: Reason?
  var detail: String
  var timestamp: Int64?

  init(_ check: Check, _ reason: Reason?, _ detail: String, timestamp: Int64? = nil) {
    self.check = check
    self.reason = reason
    self.detail = detail
    self.timestamp = timestamp
  }
}

/// A set of checks in 64 bits.
struct CheckSet: Sendable, Equatable {
  private var bits: UInt64 = 0

  init() {}

  init(_ checks: some Sequence<Check>) {
    for check in checks { bits |= 1 << UInt64(check.rawValue) }
  }

  func contains(_ check: Check) -> Bool { bits & (1 << UInt64(check.rawValue)) != 0 }

  mutating func remove(_ check: Check) { bits &= ~(1 << UInt64(check.rawValue)) }
}
