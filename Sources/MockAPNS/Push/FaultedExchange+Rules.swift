import APNSMockRules
import APNSMockFaultModel
import APNSMockHTTP2Session
import APNSMockHTTPMessage

/// The end of an exchange, after its delay.
extension FaultedExchange {
  /// Returns the error code of the RST_STREAM that ends the stream; nil without one.
  func resetCode(on stream: Int32, _ processed: ProcessedStreams) -> UInt32? {
    switch decidingAction {
    case .resetStream(let code): code
    case .hang(_, .resetStream), .loseResponse(.resetStream): HTTP2ErrorCode.internalError.rawValue
    default: isRefused(on: stream, processed) ? HTTP2ErrorCode.refusedStream.rawValue : nil
    }
  }

  /// Returns the actions on the connection that follow the response or replace it.
  func endingActions(on stream: Int32, _ processed: ProcessedStreams) -> [ConnectionAction] {
    var actions: [ConnectionAction] = []
    switch decidingAction {
    case .hang(_, .close), .loseResponse(.close), .close: actions.append(.close)
    case .resetConnection: actions.append(.reset)
    default: break
    }
    if let goAway {
      actions.append(.goAway(goAway, lastStream: processed.lastStream(of: goAway, causedBy: .push(stream))))
    }
    return actions
  }
}

/// Counts the rejections on a connection toward the setting `errors_before_goaway`.
struct RejectionCounter {
  private var count = 0

  /// Counts a response and returns whether the connection ends because of it. 410 concerns the device, not the
  /// provider, and does not count (Protocol.md, section 7.2, documented); 431 does not count either.
  mutating func endsConnection(after status: Int, limit: Int?) -> Bool {
    guard let limit, !HTTPStatus.isSuccess(status), status != 410, status != 431 else { return false }
    count += 1
    return count >= limit
  }
}
