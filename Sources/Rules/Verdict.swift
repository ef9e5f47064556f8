package import APNSMockHTTPMessage

/// The result of validating one push: what APNs would respond, and why.
package struct Verdict: Sendable {
  /// The kind of credential.
  package enum Credential: UInt8, Sendable {
    /// Neither provider token nor client certificate.
    case none
    /// A provider token, valid or not.
    case token
    /// A client certificate; a provider token is then ignored.
    case certificate
  }

  /// 200, for channel management also 201 or 204; else the status of `reason`, or 431 if the header list exceeds the
  /// limit.
  package var status: Int { rejection?.status ?? Int(acceptedStatus) }
  /// The reason of a rejection; nil with 431 and if the request is accepted.
  package var reason: Reason? { rejection?.reason }
  /// The failed check; nil if the request is accepted.
  package var failed: Check? { rejection?.check }
  /// The `timestamp` of a 410, in milliseconds since 1970.
  package var timestamp: Int64? { rejection?.timestamp }
  /// The body of a rejection's response; empty with 431 and if the request is accepted.
  package var body: [UInt8] { rejection?.body ?? [] }
  /// The facts of the request.
  package internal(set) var facts: PushFacts
  /// The kind of credential of the request.
  package internal(set) var credential = Credential.none
  /// The checks that apply to such a request under the active rules, whether they were made or not.
  var applicableChecks = CheckSet()
  /// The provider token, if one was parsed; unchecked if token updates were blocked.
  package internal(set) var token: ProviderToken?
  /// The failure; nil if the push is accepted. A reference, because most pushes have none.
  private(set) var rejection: Rejection?
  /// The accepted broadcast or request of channel management; nil for a push, and in a record.
  package private(set) var channelRequest: ChannelRequest?
  /// The status if the request is accepted: 200, 201 or 204.
  fileprivate var acceptedStatus: UInt8 = 200

  /// Creates an unevaluated verdict without facts, for `Rulebook.validate` to overwrite.
  package init() { facts = PushFacts() }

  /// Creates an unevaluated verdict with parsed facts.
  package init(facts: PushFacts) { self.facts = facts }

  /// Creates an unevaluated verdict with the facts of a request that was not validated, such as an incomplete one.
  package init(factsOnly request: borrowing HTTPRequest) { self.init(facts: PushFacts(request.headers)) }

  /// Resets the verdict for another push.
  mutating func begin(_ facts: PushFacts) {
    self.facts = facts
    credential = .none
    applicableChecks = CheckSet()
    token = nil
    rejection = nil
    channelRequest = nil
    acceptedStatus = 200
  }

  /// Accepts a broadcast or a request of channel management.
  mutating func accept(_ request: ChannelRequest) {
    channelRequest = request
    acceptedStatus = UInt8(request.operation.status)
  }

  /// Whether the push is accepted.
  package var isAccepted: Bool { rejection == nil }

  /// Returns an explanation for people: the value, the rule and how to fix it. Contains no provider token. Created
  /// on demand, because most are never read.
  ///
  /// - Parameters:
  ///   - headers: The packed header fields of the request, or a copy of them without signatures. Values missing in
  ///     it are shown as empty.
  ///   - bodySize: The received body size in bytes.
  package func detail(headers: UnsafeRawBufferPointer, bodySize: Int) -> String {
    switch rejection?.detail {
    case .ofHeaders(let text)?: text(facts, headers)
    case .ofTimestamp(let text)?: text(facts, headers, timestamp ?? 0)
    case .ofBody(let text)?: text(facts, bodySize)
    case nil: "accepted"
    }
  }

  /// The checks that were made, in order, up to the failed one.
  package var checks: [(check: Check, ok: Bool)] {
    if failed == .headerListSize { return [(.headerListSize, false)] }
    var made: [(check: Check, ok: Bool)] = []
    for check in Check.allCases where applicableChecks.contains(check) {
      made.append((check, check != failed))
      if check == failed { break }
    }
    return made
  }

  /// Turns an accepted push into a 429 `TooManyRequests` that `DeviceRateLimiter` did not admit: the check
  /// `device_rate` of Protocol.md, section 8.2. This last check is made outside of `Rulebook.validate` because its state is shared by
  /// all connections.
  package mutating func reject(over rate: DeviceRate) {
    reject(
      Rejection(.deviceRate, .tooManyRequests) { _, _ in
        "more than \(rate.count) pushes within \(rate.per) to this device token: slow down for this device"
      })
  }

  /// Turns an accepted request for a new channel into a 400 `CannotCreateChannelConfig`. This last check is made
  /// outside of `Rulebook.validate`, together with reserving the channel.
  ///
  /// - Parameter limit: What is exhausted.
  package mutating func rejectNewChannel(over limit: ChannelLimit) {
    reject(
      Rejection(.channelLimit, .cannotCreateChannelConfig) { _, _ in "\(limit): delete unused channels" })
  }

  mutating func reject(_ rejection: Rejection) {
    self.rejection = rejection
    channelRequest = nil
  }
}

/// A limit of the number of channels.
package enum ChannelLimit: Error, Equatable, CustomStringConvertible {
  /// That of an app in an environment (Protocol.md, section 10.2, documented as 10 000).
  case ofApp(Int)
  /// That of all channels in this server, which bounds its memory.
  case ofServer(Int)
  /// That of the apps with channels in this server, each environment counted on its own, which bounds its memory.
  case apps(Int)

  package var description: String {
    switch self {
    case .ofApp(let count): "the app has \(count) channels in this environment, which is the limit"
    case .ofServer(let count): "this server has \(count) channels, which is its own limit"
    case .apps(let count): "this server has channels of \(count) apps, which is its own limit"
    }
  }
}

extension Verdict {
  /// Creates the verdict of an imported record.
  ///
  /// - Parameters:
  ///   - acceptedStatus: The status if the request was accepted.
  ///   - passed: The checks that passed.
  ///   - failed: The failed check and its reason; nil if the push was accepted.
  package init(
    facts: PushFacts, credential: Credential, token: ProviderToken?, acceptedStatus: Int = 200, passed: [Check],
    failed: (check: Check, reason: Reason?, detail: String)?
  ) {
    self.init()
    begin(facts)
    self.acceptedStatus = UInt8(clamping: acceptedStatus)
    self.credential = credential
    self.token = token
    applicableChecks = CheckSet(passed + (failed.map { [$0.check] } ?? []))
    if let failed { reject(Rejection(failed.check, failed.reason) { _, _ in failed.detail }) }
  }
}

extension Verdict {
  /// The failed check of a stored verdict.
  package struct StoredFailure: Sendable {
    /// The check.
    package let check: Check
    /// The reason; nil with 431.
    package let reason: Reason?
    /// The `timestamp` of a 410, in milliseconds since 1970.
    package let timestamp: Int64?
    /// The explanation.
    package let detail: String

    /// Creates the description of a failed check.
    package init(check: Check, reason: Reason?, timestamp: Int64?, detail: String) {
      (self.check, self.reason, self.timestamp, self.detail) = (check, reason, timestamp, detail)
    }
  }

  /// The names of the checks that apply to the request, whether they were made or not.
  package var applicableCheckNames: [String] { Check.allCases.filter(applicableChecks.contains).map(\.name) }

  /// A number that is equal for verdicts with the same applicable checks, within this process.
  package var applicableCheckBits: UInt64 { applicableChecks.bits }

  /// Creates the verdict of a record from a database.
  ///
  /// - Parameters:
  ///   - checkBits: The `applicableCheckBits` of a verdict with the same applicable checks.
  ///   - failure: The failed check; nil if the push was accepted.
  package init(
    facts: PushFacts, credential: Credential, token: ProviderToken?, acceptedStatus: Int, checkBits: UInt64,
    failure: StoredFailure?
  ) {
    self.init()
    begin(facts)
    self.acceptedStatus = UInt8(clamping: acceptedStatus)
    self.credential = credential
    self.token = token
    applicableChecks.bits = checkBits
    if let failure {
      reject(Rejection(failure.check, failure.reason, timestamp: failure.timestamp) { _, _ in failure.detail })
    }
  }

  /// Returns the `applicableCheckBits` of checks with these names. Unknown names are ignored.
  package static func checkBits(names: some Sequence<some StringProtocol>) -> UInt64 {
    CheckSet(names.compactMap { Check(named: String($0)) }).bits
  }
}

/// The error thrown by a failed check. Shared by all pushes with the same failure where possible; the explanation
/// is made from each push's own headers.
final class Rejection: Error {
  let check: Check
  /// Nil for 431, the only error response of APNs without a reason.
  let reason: Reason?
  let status: Int
  let timestamp: Int64?
  let detail: Detail

  /// The body of the response. Created on demand, because every record of a 410 keeps its rejection.
  var body: [UInt8] { reason?.body(timestamp: timestamp) ?? [] }

  /// The closure that creates the explanation.
  enum Detail: Sendable {
    /// From the facts and the packed header fields.
    case ofHeaders(@Sendable (_ facts: PushFacts, _ packed: UnsafeRawBufferPointer) -> String)
    /// From the facts, the packed header fields and the timestamp, so that the closure need not capture it.
    case ofTimestamp(@Sendable (_ facts: PushFacts, _ packed: UnsafeRawBufferPointer, _ timestamp: Int64) -> String)
    /// From the facts and the body size.
    case ofBody(@Sendable (_ facts: PushFacts, _ bodySize: Int) -> String)
  }

  convenience init(
    _ check: Check, _ reason: Reason?, timestamp: Int64? = nil,
    _ detail: @escaping @Sendable (_ facts: PushFacts, _ packed: UnsafeRawBufferPointer) -> String
  ) {
    self.init(check, reason, timestamp: timestamp, detail: .ofHeaders(detail))
  }

  init(_ check: Check, _ reason: Reason?, timestamp: Int64? = nil, detail: Detail) {
    self.check = check
    self.reason = reason
    status = reason?.status ?? 431
    self.timestamp = timestamp
    self.detail = detail
  }
}

/// A set of checks with one bit each. Uses six bytes instead of eight to keep stored records small.
struct CheckSet: Sendable, Equatable {
  private var low: UInt32 = 0
  private var high: UInt16 = 0

  fileprivate var bits: UInt64 {
    get { UInt64(high) << 32 | UInt64(low) }
    set { (low, high) = (UInt32(truncatingIfNeeded: newValue), UInt16(truncatingIfNeeded: newValue >> 32)) }
  }

  init() {}

  init(_ checks: some Sequence<Check>) {
    for check in checks { bits |= 1 << UInt64(check.rawValue) }
  }

  func contains(_ check: Check) -> Bool { bits & (1 << UInt64(check.rawValue)) != 0 }

  mutating func remove(_ check: Check) { bits &= ~(1 << UInt64(check.rawValue)) }

  func union(_ other: CheckSet) -> CheckSet {
    var union = self
    union.bits |= other.bits
    return union
  }

  func intersection(_ other: CheckSet) -> CheckSet {
    var intersection = self
    intersection.bits &= other.bits
    return intersection
  }
}

/// A verdict without strong references, which records can store, copy and discard as plain bytes.
///
/// The owner of the record must keep the referenced objects alive for as long; see `forEachReferent`.
package struct PackedVerdict: Sendable {
  /// The facts of the request.
  package let facts: PushFacts
  private let applicableChecks: CheckSet
  /// The kind of credential of the request.
  package let credential: Verdict.Credential
  private let acceptedStatus: UInt8
  private let rejection: Unmanaged<Rejection>?
  private let provider: Unmanaged<ProviderToken>?

  /// Packs a verdict.
  package init(_ verdict: borrowing Verdict) {
    facts = verdict.facts
    applicableChecks = verdict.applicableChecks
    credential = verdict.credential
    acceptedStatus = verdict.acceptedStatus
    rejection = verdict.rejection.map { .passUnretained($0) }
    provider = verdict.token.map { .passUnretained($0) }
  }

  /// Whether the push is accepted.
  package var isAccepted: Bool { rejection == nil }

  /// The provider token, if one was parsed.
  package var token: ProviderToken? { provider?.takeUnretainedValue() }

  /// The unpacked verdict.
  package var verdict: Verdict {
    var verdict = Verdict(facts: facts)
    verdict.applicableChecks = applicableChecks
    verdict.credential = credential
    verdict.acceptedStatus = acceptedStatus
    verdict.token = token
    if let rejection { verdict.reject(rejection.takeUnretainedValue()) }
    return verdict
  }

  /// Calls `body` with each object that must be kept alive.
  @inline(__always)
  package func forEachReferent(_ body: (Unmanaged<AnyObject>) -> Void) {
    if let provider { body(.fromOpaque(provider.toOpaque())) }
    if let rejection { body(.fromOpaque(rejection.toOpaque())) }
  }
}
