internal import APNSMockRules

/// Which push each attempt belongs to, for all verdicts about several attempts.
///
/// Attempts whose body is known belong together by their push key. One whose body is not known belongs to the push that has its
/// `apns-id`; if there is none, it is a push of its own until a later attempt is matched to it (`PartialAttempts`).
struct PushIdentities: Sendable {
  /// The push of an attempt.
  struct Identity: Sendable {
    let push: PushKey
    /// The push that earlier attempts were taken for, which turn out to be attempts of `push`; nil in general.
    var former: PushKey?
    /// Whether a retry of the attempt was accepted, and recorded, before it.
    var isOvertaken = false
  }

  /// The maximum number of pushes whose `apns-id` is known.
  private static let limit = AttemptTable.limit
  private static let pruneFrom = 4096

  /// The pushes of complete attempts, by the client's `apns-id`.
  private var pushes = GenerationalCache<PushKey, PushKey>(limit: limit)
  private var partial = PartialAttempts<PushKey>()
  /// The identities that do not follow from the record alone, by its `seq`.
  private(set) var special: [Int: Identity] = [:]
  private var pruneAt = pruneFrom

  /// Whether something was dropped that matches depend on.
  var isTruncated: Bool { partial.isTruncated }

  /// Determines the push of an attempt. Attempts are passed in the order of their numbers, each once.
  mutating func identify(_ record: borrowing Record) -> Identity {
    var identity = Identity(push: record.pushKey)
    let id = record.idKey
    if record.isRequestComplete {
      if let id { pushes[id] = identity.push }
      if partial.isEmpty { return identity }
      identity.former = partial.takeMatch(record.partialPush, arrivedAt: record.arrivedAt)
      if identity.former == nil { return identity }
    } else if let push = id.flatMap({ pushes[$0] }) {
      identity = Identity(push: push)
    } else {
      let attempt = record.partialPush
      identity = Identity(
        push: partial.takeMatch(attempt, arrivedAt: record.arrivedAt) ?? Self.push(of: record.seq))
      partial.add(attempt, endedAt: record.endedAt, identity.push)
    }
    special[record.seq] = identity
    return identity
  }

  /// A key for a push of which nothing is known but the number of a record.
  private static func push(of seq: Int) -> PushKey {
    withUnsafeBytes(of: seq) { PushKey(bytes: $0) }
  }

  /// Notes that a retry of the attempt was accepted, and recorded, before it.
  mutating func markOvertaken(_ seq: Int, _ identity: Identity) {
    special[seq] = Identity(push: identity.push, former: identity.former, isOvertaken: true)
  }

  /// Drops what is known of removed records, once there may be many.
  mutating func prune(contains: (Int) throws -> Bool) rethrows {
    guard special.count >= pruneAt else { return }
    special = try special.filter { try contains($0.key) }
    pruneAt = max(Self.pruneFrom, 2 * special.count)
  }
}
