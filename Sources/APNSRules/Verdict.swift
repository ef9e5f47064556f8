public import HTTPMessage

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
  public var status: Int { rejection?.status ?? 200 }
  /// Why not; `nil` with 200 and 431.
  public var reason: Reason? { rejection?.reason }
  /// The check that failed; `nil` with 200.
  public var failed: Check? { rejection?.check }
  /// Why, in words for people: the value, the rule and what to do about it. Never has a provider token in it. Made when
  /// it is asked for, because of most pushes nobody asks.
  ///
  /// - Parameters:
  ///   - headers: the packed header fields of the request, or a copy of them without signatures. Values that are not in
  ///     it are shown as empty.
  ///   - bodySize: how many bytes of body came.
  public func detail(headers: UnsafeRawBufferPointer, bodySize: Int) -> String {
    switch rejection?.words {
    case .ofHeaders(let words)?: words(facts, headers)
    case .ofBody(let words)?: words(facts, bodySize)
    case nil: "accepted"
    }
  }
  /// The `timestamp` of a 410, in milliseconds since 1970.
  public var timestamp: Int64? { rejection?.timestamp }
  /// The body of the answer; empty with 200 and 431.
  public var body: [UInt8] { rejection?.body ?? [] }
  /// What the request says.
  public internal(set) var facts: PushFacts
  /// What the request came with to authenticate itself.
  public internal(set) var credential = Credential.none
  /// The checks such a request goes through under the rules in force, made or not.
  var planned = CheckSet()
  /// The provider token, if one came and was looked at; unchecked where the connection was latched before it.
  public internal(set) var token: ProviderToken?
  /// What was wrong; `nil` where APNs takes the push. A reference, because most pushes have none.
  private(set) var rejection: Rejection?

  /// Of a push that says nothing and that nobody has judged: `Rulebook.judge` writes over it.
  public init() { facts = PushFacts() }

  /// Of a push that nobody has judged, but that says something.
  package init(facts: PushFacts) { self.facts = facts }

  /// Of a request that nobody has judged because it did not come whole, but whose headers say something.
  public init(of request: borrowing HTTPRequest) { self.init(facts: PushFacts(request.headers)) }

  /// Forgets what was said of another push.
  mutating func begin(_ facts: PushFacts) {
    self.facts = facts
    credential = .none
    planned = CheckSet()
    token = nil
    rejection = nil
  }

  /// Whether APNs takes the push.
  public var isAccepted: Bool { rejection == nil }

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
      Rejection(.deviceRate, .tooManyRequests) { _, _ in
        "more than \(rate.count) pushes within \(rate.per) to this device token: slow down for this device"
      })
  }

  mutating func reject(_ rejection: Rejection) { self.rejection = rejection }
}

extension Verdict {
  /// A verdict that was given elsewhere, as far as records tell it.
  ///
  /// - Parameters:
  ///   - passed: the checks that were made and passed.
  ///   - failed: the one that did not, and why; nil where APNs took the push.
  package init(
    facts: PushFacts, credential: Credential, token: ProviderToken?, passed: [Check],
    failed: (check: Check, reason: Reason?, detail: String)?
  ) {
    self.init()
    begin(facts)
    self.credential = credential
    self.token = token
    planned = CheckSet(passed + (failed.map { [$0.check] } ?? []))
    if let failed { reject(Rejection(failed.check, failed.reason) { _, _ in failed.detail }) }
  }
}

/// What a failed check throws. One object serves for all pushes that are rejected for the same: what is said of each of
/// them comes from its own headers.
final class Rejection: Error {
  let check: Check
  /// `nil` for the one answer that APNs gives without a reason: 431.
  let reason: Reason?
  let status: Int
  let timestamp: Int64?
  /// Of the answer.
  let body: [UInt8]
  let words: Words

  /// What makes the explanation.
  enum Words: Sendable {
    /// From what a request says and its packed header fields.
    case ofHeaders(@Sendable (_ facts: PushFacts, _ packed: UnsafeRawBufferPointer) -> String)
    /// From what it says and how many bytes its body has.
    case ofBody(@Sendable (_ facts: PushFacts, _ bodySize: Int) -> String)
  }

  convenience init(
    _ check: Check, _ reason: Reason?, timestamp: Int64? = nil,
    _ words: @escaping @Sendable (_ facts: PushFacts, _ packed: UnsafeRawBufferPointer) -> String
  ) {
    self.init(check, reason, timestamp: timestamp, words: .ofHeaders(words))
  }

  init(_ check: Check, _ reason: Reason?, timestamp: Int64? = nil, words: Words) {
    self.check = check
    self.reason = reason
    status = reason?.status ?? 431
    self.timestamp = timestamp
    body = reason?.body(timestamp: timestamp) ?? []
    self.words = words
  }
}

/// A set of checks, a bit for each of them: each record has one.
struct CheckSet: Sendable, Equatable {
  private var bits: UInt32 = 0

  init() {}

  init(_ checks: some Sequence<Check>) {
    for check in checks { bits |= 1 << UInt32(check.rawValue) }
  }

  func contains(_ check: Check) -> Bool { bits & (1 << UInt32(check.rawValue)) != 0 }

  mutating func remove(_ check: Check) { bits &= ~(1 << UInt32(check.rawValue)) }
}
