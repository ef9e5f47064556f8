internal import APNSRules

/// The pushes whose last attempt was neither accepted nor rejected for good: `abandoned` and `nothing_lost`.
///
/// At most one entry per push, by the number of its last attempt. Entries of evicted records are dropped by `prune`.
struct UnsettledPushes: Sendable {
  /// The last attempt of a push.
  struct Attempt: Sendable {
    let push: PushKey
    /// Milliseconds since 1970 of the server's clock; nil while the attempt is pending.
    let finishedAt: Int64?
    /// Whether `apns-mock` itself sent it, which never retries.
    let isByOwnClient: Bool
  }

  private static let pruneFrom = 4096

  /// By the numbers of the records.
  private(set) var attempts: [Int: Attempt] = [:]
  private var seqs: [PushKey: Int] = [:]
  private var pruneAt = pruneFrom

  /// Whether every push is settled.
  var isEmpty: Bool { attempts.isEmpty }

  /// Adds an attempt that is pending. It replaces the earlier attempt of its push.
  mutating func begin(_ seq: Int, _ push: PushKey) {
    set(seq, Attempt(push: push, finishedAt: nil, isByOwnClient: false))
  }

  /// Takes an attempt that has ended. It replaces the earlier attempt of its push.
  ///
  /// - Parameter wasPending: whether `begin` was called for it, so that a later attempt may have replaced it.
  mutating func take(_ record: borrowing Record, _ push: PushKey, wasPending: Bool) {
    if wasPending, seqs[push] != record.seq { return }
    guard !record.isSettled else { return remove(push) }
    set(
      record.seq,
      Attempt(
        push: push, finishedAt: record.finishedAt ?? record.receivedAt, isByOwnClient: record.isByOwnClient))
  }

  /// Removes a pending attempt whose record is gone.
  mutating func forget(_ seq: Int, _ push: PushKey) {
    if seqs[push] == seq { remove(push) }
  }

  /// Drops the entries of records that are gone, once there may be many.
  mutating func prune(isThere: (Int) -> Bool) {
    guard attempts.count >= pruneAt else { return }
    for (seq, attempt) in attempts where !isThere(seq) { remove(attempt.push) }
    pruneAt = max(Self.pruneFrom, 2 * attempts.count)
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

extension Record {
  /// Whether no retry is expected: APNs accepted the push, or the client received an answer that is final.
  fileprivate var isSettled: Bool {
    if accepted { return true }
    switch AttemptEnd(self) {
    case .delivered, .permanent, .gone: return true
    case nil, .later, .unprocessed, .lost: return false
    }
  }

  /// Whether the request arrived completely but was not processed: after GOAWAY, or after a fault cut the connection.
  var isUnprocessed: Bool { !isJudged && outcome == .faulted }
}
