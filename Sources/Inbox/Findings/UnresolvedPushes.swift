internal import Notation

internal import APNSRules

/// The pushes whose last attempt was neither accepted nor permanently rejected, for `abandoned` and `nothing_lost`.
///
/// At most one entry per push, by the `seq` of its last attempt. `prune(contains:)` drops the entries of evicted
/// records.
struct UnresolvedPushes: Sendable {
  /// A push's last attempt.
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
  /// - Parameter wasPending: Whether `addPending(_:_:)` was called for it, so that a later attempt may have replaced
  ///   it.
  mutating func update(_ record: borrowing Record, _ push: PushKey, wasPending: Bool) {
    if wasPending, seqs[push] != record.seq { return }
    guard !record.isResolved else { return remove(push) }
    set(
      record.seq,
      Attempt(
        push: push, finishedAt: record.finishedAt ?? record.receivedAt, isByOwnClient: record.isByOwnClient))
  }

  /// Drops a pending attempt whose record was removed.
  mutating func removePending(_ seq: Int, _ push: PushKey) {
    if seqs[push] == seq { remove(push) }
  }

  /// Drops the entries of removed records, once there may be many.
  mutating func prune(contains: (Int) -> Bool) {
    guard attempts.count >= pruneAt else { return }
    for (seq, attempt) in attempts where !contains(seq) { remove(attempt.push) }
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
  /// Whether no retry is expected: the push was accepted, or the response to the client is final.
  fileprivate var isResolved: Bool {
    if accepted { return true }
    switch AttemptResult(self) {
    case .delivered, .permanent, .unregistered: return true
    case nil, .temporary, .unprocessed, .lost: return false
    }
  }

  /// Whether the request was complete but not processed: after a GOAWAY, or after a fault cut the connection.
  var isUnprocessed: Bool { !hasVerdict && outcome == .faulted }
}
