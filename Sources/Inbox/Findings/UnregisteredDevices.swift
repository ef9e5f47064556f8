internal import Notation

internal import APNSRules

/// Device tokens with a 410 response, and later pushes to them, for `retried-410`.
struct UnregisteredDevices: Sendable {
  private struct UnregisteredResponse: Sendable {
    let response: String
    var rejection: SharedRejection
    /// Whether the registry caused the 410, not a fault: then the registry also knows when the device is registered
    /// again.
    let isFromRegistry: Bool
  }

  private static let limit = 32_768

  private var responses = GenerationalCache<PushKey, UnregisteredResponse>(limit: limit)

  /// Whether there was no 410 response.
  var isEmpty: Bool { responses.isEmpty }

  /// Analyzes an attempt that has ended.
  ///
  /// - Parameter end: Returns how a connection has ended; nil for an open one.
  mutating func analyze(
    _ record: borrowing Record, _ push: PushKey, _ end: (UInt64) -> ConnectionEnd.Closing?
  ) -> FindingEvidence? {
    let is410 = record.sentResponse.status == 410 && record.end.ending == .response
    guard is410 || !responses.isEmpty else { return nil }
    let facts = record.facts
    let defaultTopic = record.connection.defaultTopic(facts)
    let device = record.withHeaders { PushKey(deviceOf: $0, facts, defaultTopic: defaultTopic) }
    guard var response = responses[device] else {
      guard is410 else { return nil }
      responses[device] = UnregisteredResponse(
        response: record.responseText, rejection: SharedRejection(record, push),
        isFromRegistry: record.verdict?.status == 410)
      return nil
    }
    let isAcceptedAgain = record.verdict?.isAccepted == true
    if response.isFromRegistry && isAcceptedAgain {
      // The device was registered again.
      responses[device] = nil
      return nil
    }
    guard let delay = response.rejection.delay(of: record, push, end) else {
      if is410 {
        response.rejection.add(record, push)
        responses[device] = response
      }
      return nil
    }
    if record.sentResponse.status == 200 { responses[device] = nil }
    return FindingEvidence(
      .retried410, with: [response.rejection.seq], .unregistered(response: response.response, after: delay))
  }
}

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
