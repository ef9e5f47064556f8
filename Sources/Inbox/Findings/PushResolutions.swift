internal import APNSRules
internal import Notation

/// Which pushes are not resolved, for `abandoned` and `nothing_lost`.
///
/// A push is resolved if it was accepted, by its last attempt or in a sequence whose accepted response was lost, or if its last
/// attempt was rejected for good and its response went out. At most one entry per push, by the `seq` of its last attempt, and
/// one for each attempt whose body is not known. `prune(contains:)` drops the entries of evicted records.
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
  private static let limit = AttemptTable.limit

  /// The last attempts by the `seq` of their records.
  private(set) var attempts: [Int: Attempt] = [:]
  /// The `seq` of attempts of which a record of an older format does not say how they ended.
  private(set) var unknown: Set<Int> = []
  private var seqs: [PushKey: Int] = [:]
  /// When pushes were accepted whose response was lost.
  private var arrived = GenerationalCache<PushKey, MonotonicTime>(limit: limit)
  /// The `seq` of attempts whose body is not known.
  private var partial = PartialAttempts<Int>()
  private var pruneAt = pruneFrom

  /// Whether every push is resolved, and an accepted one changes nothing.
  var isEmpty: Bool { attempts.isEmpty && arrived.isEmpty && partial.isEmpty }

  /// Adds an attempt that is pending. It replaces the earlier attempt of its push.
  mutating func addPending(_ seq: Int, _ push: PushKey) {
    set(seq, Attempt(push: push, finishedAt: nil, isByOwnClient: false))
  }

  /// Adds an attempt that has ended. It replaces the earlier attempt of its push.
  ///
  /// - Parameter wasPending: Whether `addPending(_:_:)` was called for it, so that a later attempt may have replaced
  ///   it.
  mutating func update(_ record: borrowing Record, _ push: PushKey, wasPending: Bool) {
    if !partial.isEmpty, let seq = partial.takeMatch(record.partialPush, arrivedAt: record.arrivedAt) {
      attempts[seq] = nil
    }
    if record.outcome == .unknown { unknown.insert(record.seq) }
    if wasPending, seqs[push] != record.seq {
      if record.accepted {
        _ = isResolved(record, push)
        remove(push)
      }
      return
    }
    if isResolved(record, push) || record.outcome == .unknown { return remove(push) }
    let attempt = Attempt(
      push: push, finishedAt: record.finishedAt ?? record.receivedAt, isByOwnClient: record.isByOwnClient)
    guard record.isRequestComplete else {
      attempts[record.seq] = attempt
      return partial.add(record.partialPush, endedAt: record.endedAt, record.seq)
    }
    set(record.seq, attempt)
  }

  private mutating func isResolved(_ record: borrowing Record, _ push: PushKey) -> Bool {
    if record.accepted {
      if record.outcome == .accepted {
        if !arrived.isEmpty { arrived.removeValue(forKey: push) }
      } else {
        arrived[push] = record.endedAt
      }
      return true
    }
    if !arrived.isEmpty, let time = arrived[push], record.arrivedAt &- time < FindingThreshold.retryWindow {
      return true
    }
    return record.isRejectedForGood
  }

  /// Drops a pending attempt whose record was removed.
  mutating func removePending(_ seq: Int, _ push: PushKey) {
    if seqs[push] == seq { remove(push) }
  }

  /// Drops the entries of removed records, once there may be many.
  mutating func prune(contains: (Int) -> Bool) {
    guard attempts.count + unknown.count >= pruneAt else { return }
    for (seq, attempt) in attempts where !contains(seq) {
      attempts[seq] = nil
      if seqs[attempt.push] == seq { seqs[attempt.push] = nil }
    }
    unknown = unknown.filter { contains($0) }
    let remaining = attempts
    partial.removeAll { remaining[$0] == nil }
    pruneAt = max(Self.pruneFrom, 2 * (attempts.count + unknown.count))
  }

  private mutating func set(_ seq: Int, _ attempt: Attempt) {
    remove(attempt.push)
    attempts[seq] = attempt
    seqs[attempt.push] = seq
  }

  private mutating func remove(_ push: PushKey) {
    if let seq = seqs.removeValue(forKey: push) { attempts[seq] = nil }
  }
}
