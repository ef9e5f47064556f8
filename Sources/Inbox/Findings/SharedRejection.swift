internal import APNSMockRules
internal import APNSMockNotation

/// A rejection that concerns all pushes with the same device or provider token. A retry of a push that has it is reported at once,
/// because the client has read the response; other pushes may have been sent before that.
struct SharedRejection: Sendable {
  private struct Response: Sendable {
    let at: MonotonicTime
    /// The `identity` of the connection.
    let connection: UInt64
  }

  /// The maximum number of pushes. Retries of others are reported after `FindingThreshold.reaction`, as all pushes are.
  private static let limit = 32

  /// The `seq` of the first record.
  let seq: Int
  private let first: Response
  /// The responses to the first pushes that were rejected.
  private var responses: [PushKey: Response]

  init(_ record: borrowing Record, _ push: PushKey) {
    seq = record.seq
    first = Response(at: record.endedAt, connection: record.connection.identity)
    responses = [push: first]
  }

  /// Adds a push that was rejected.
  mutating func add(_ record: borrowing Record, _ push: PushKey) {
    guard responses.count < Self.limit, responses[push] == nil else { return }
    responses[push] = Response(at: record.endedAt, connection: record.connection.identity)
  }

  /// Returns the nanoseconds after the first response in which a push arrived; nil if the client may not have read the response.
  ///
  /// - Parameter end: Returns how a connection has ended; nil for an open one.
  func delay(
    of record: borrowing Record, _ push: PushKey, _ end: (UInt64) -> ConnectionEnd.Closing?
  ) -> Int64? {
    let (delay, arrivedAt) = (record.arrivedAt &- first.at, record.arrivedAt)
    let own = responses[push].flatMap { $0.at <= arrivedAt ? $0 : nil }
    guard delay >= 0, let response = own ?? (delay >= FindingThreshold.reaction ? first : nil),
      end(response.connection)?.mayHaveDestroyed(responseOf: response.at, before: arrivedAt) != true
    else { return nil }
    return delay
  }
}

extension ConnectionEnd.Closing {
  /// Whether the server reset the connection before a time, and the client had not shown until then that it read a response.
  ///
  /// - Parameter respondedAt: When the response was written.
  func mayHaveDestroyed(responseOf respondedAt: MonotonicTime, before time: MonotonicTime) -> Bool {
    initiator == .server && isReset && at <= time && lastReceivedAt &- respondedAt < FindingThreshold.reaction
  }
}
