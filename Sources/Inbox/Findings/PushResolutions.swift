internal import APNSMockRules
internal import APNSMockNotation

/// What earlier attempts of a push have settled, for `nothing_lost`, `duplicate` and `blind-resend`: it was accepted, or rejected
/// for good.
struct Settlement: Sendable {
  /// An attempt with a complete response.
  struct Answered: Sendable {
    let seq: Int
    /// The `idIdentity` of the record.
    let id: Int
    /// In monotonic nanoseconds.
    let respondedAt: MonotonicTime
    /// The `identity` of the connection.
    let connection: UInt64

    fileprivate init(_ record: borrowing Record) {
      seq = record.seq
      id = record.idIdentity
      respondedAt = record.endedAt
      connection = record.connection.identity
    }

    /// Whether another attempt has the same `apns-id`, and is not too long after this one.
    fileprivate func isRepeated(by record: borrowing Record) -> Bool {
      record.arrivedAt &- respondedAt < FindingThreshold.retryWindow && id == record.idIdentity
    }
  }

  /// The nanoseconds by which the retry of an unprocessed push may overtake it: its new connection may be read before the
  /// rest of the old one.
  private static let overtakingTime: Int64 = 1_000_000_000

  /// The last accepted attempt with a complete response; nil if there was none.
  private(set) var accepted: Answered?
  /// When the last accepted attempt ended, if its response was lost.
  private var lostAt: MonotonicTime?
  /// The last attempt, if it was rejected for good.
  private var rejected: Answered?

  /// Adds an attempt that has ended. It has to be accepted or rejected for good.
  mutating func add(_ record: borrowing Record) {
    if record.outcome == .accepted {
      self = Settlement(accepted: Answered(record))
    } else if record.accepted {
      self = Settlement(accepted: accepted, lostAt: record.endedAt)
    } else {
      rejected = Answered(record)
    }
  }

  /// Whether another attempt repeats what had arrived, so that its end changes nothing: the client had no response, or repeats
  /// the `apns-id`.
  func includes(_ record: borrowing Record) -> Bool {
    accepted?.isRepeated(by: record) == true
      || lostAt.map { record.arrivedAt &- $0 < FindingThreshold.retryWindow } ?? false
  }

  /// Whether an attempt that was not processed was probably sent before the push was settled, although it was recorded after
  /// that: a client that has the response does not send the push again. A request that never became complete may end long
  /// after it was sent; a complete one was read soon after that.
  func hasOvertaken(_ record: borrowing Record) -> Bool {
    guard lostAt == nil, !record.hasVerdict, record.end.decision == .notProcessed else { return false }
    guard let accepted else { return rejected?.isRepeated(by: record) == true }
    return record.arrivedAt &- accepted.respondedAt < Self.overtakingTime
      || !record.isRequestComplete && accepted.isRepeated(by: record)
  }
}

/// Which pushes are not resolved, for `abandoned` and `nothing_lost`.
///
/// A push is resolved if it was accepted, by its last attempt or in a sequence whose accepted response was lost or whose `apns-id`
/// the last attempt has, or if its last attempt was rejected for good and its response went out. At most one entry per push, by
/// the `seq` of its last attempt. `prune(contains:)` drops the entries of evicted records.
struct PushResolutions: Sendable {
  /// The last attempt of a push that is not resolved.
  struct Attempt: Sendable {
    let push: PushKey
    /// The time of the end in milliseconds since 1970 by the server's clock; nil while the attempt is pending.
    let finishedAt: ServerTime?
    /// Whether `apns-mock` itself sent the push; it never retries.
    let isByOwnClient: Bool
  }

  private static let pruneFrom = 4096

  /// The last attempts by the `seq` of their records.
  private(set) var attempts: [Int: Attempt] = [:]
  /// The `seq` of attempts of which a record of an older format does not say how they ended.
  private(set) var unknown: Set<Int> = []
  private var seqs: [PushKey: Int] = [:]
  private var pruneAt = pruneFrom

  /// Whether every push is resolved.
  var isEmpty: Bool { attempts.isEmpty }

  /// Adds an attempt that is pending. It replaces the earlier attempt of its push.
  mutating func addPending(_ seq: Int, _ push: PushKey) {
    set(seq, Attempt(push: push, finishedAt: nil, isByOwnClient: false))
  }

  /// Adds an attempt that has ended. It replaces the earlier attempt of its push.
  ///
  /// - Parameters:
  ///   - settlement: What earlier attempts of the push have settled; nil for nothing.
  ///   - wasPending: Whether `addPending(_:_:)` was called for it, so that a later attempt may have replaced it.
  mutating func update(_ record: borrowing Record, _ push: PushKey, after settlement: Settlement?, wasPending: Bool) {
    if record.outcome == .unknown { unknown.insert(record.seq) }
    if wasPending, seqs[push] != record.seq {
      if record.accepted { remove(push) }
      return
    }
    let isResolved = record.accepted || settlement?.includes(record) == true || record.isRejectedForGood
    if isResolved || record.outcome == .unknown { return remove(push) }
    set(
      record.seq,
      Attempt(push: push, finishedAt: record.finishedAt ?? record.receivedAt, isByOwnClient: record.isByOwnClient))
  }

  /// Drops a pending attempt whose record was removed.
  mutating func removePending(_ seq: Int, _ push: PushKey) {
    if seqs[push] == seq { remove(push) }
  }

  /// Removes a push: it is resolved, or another one.
  mutating func remove(_ push: PushKey) {
    if let seq = seqs.removeValue(forKey: push) { attempts[seq] = nil }
  }

  /// Drops the entries of removed records, once there may be many.
  mutating func prune(contains: (Int) throws -> Bool) rethrows {
    guard attempts.count + unknown.count >= pruneAt else { return }
    for (seq, attempt) in attempts where try !contains(seq) {
      attempts[seq] = nil
      if seqs[attempt.push] == seq { seqs[attempt.push] = nil }
    }
    unknown = try unknown.filter { try contains($0) }
    pruneAt = max(Self.pruneFrom, 2 * (attempts.count + unknown.count))
  }

  private mutating func set(_ seq: Int, _ attempt: Attempt) {
    remove(attempt.push)
    attempts[seq] = attempt
    seqs[attempt.push] = seq
  }
}
