package import APNSMockHTTPMessage
import APNSMockInbox
import APNSMockNotation
import NIOCore
import Synchronization

/// The end of a forwarded request.
package enum UpstreamResult: Sendable {
  /// Upstream's complete response.
  case response(HTTPResponse)
  /// A GOAWAY excluded the stream: upstream did not process the request.
  case excluded
  /// Nothing of the request was sent, or upstream refused its stream, for this reason.
  case refused(String)
  /// The request was sent, and it is not known what upstream did with it, for this reason.
  case unknown(String)
}

/// The end of a forwarded request, with its circumstances.
package struct UpstreamAnswer: Sendable {
  /// How the request ended.
  package let result: UpstreamResult
  /// The number of the connection, from 1; nil if none was used.
  package let connection: Int?
  /// What the record of the push keeps.
  let recorded: WireDetails.UpstreamAnswer
  /// The time in milliseconds since 1970 in the body of a 410; nil for other answers.
  let timestamp: Int64?

  /// The status of the response; nil without one.
  package var status: Int? { recorded.status }
  /// The reason in the response's body; nil without one.
  package var reason: String? { recorded.reason }

  /// - Parameter latency: Nanoseconds from sending the request to its end; nil if it was not sent.
  init(result: UpstreamResult, connection: Int?, latency: Int64?) {
    self.result = result
    self.connection = connection
    switch result {
    case .response(let response):
      let status = response.status
      let rejection = status == 200 ? nil : RejectionBody(response.body)
      recorded = .init(
        status: status, reason: rejection?.reason, apnsID: response.headers["apns-id"], latency: latency,
        connection: connection)
      timestamp = rejection?.timestamp
    case .excluded:
      recorded = .init(problem: "a GOAWAY excluded the stream", latency: latency, connection: connection)
      timestamp = nil
    case .refused(let problem), .unknown(let problem):
      recorded = .init(problem: problem, latency: latency, connection: connection)
      timestamp = nil
    }
  }
}

/// A request that is forwarded. It may be canceled until it is sent.
final class UpstreamPush: Sendable {
  private enum State {
    static let waiting: UInt8 = 0
    static let sent: UInt8 = 1
    static let canceled: UInt8 = 2
  }

  let headers: HeaderList
  let body: [UInt8]
  /// The team of the provider token; nil if it is unknown.
  let team: String?
  /// The provider's stream.
  let stream: Int32
  let receiver: UpstreamReceiver
  private let state = Atomic<UInt8>(State.waiting)
  private let member = Atomic<Int>(0)
  private let sentOn = Atomic<Int32>(0)

  init(headers: HeaderList, body: [UInt8], team: String?, stream: Int32, receiver: UpstreamReceiver) {
    self.headers = headers
    self.body = body
    self.team = team
    self.stream = stream
    self.receiver = receiver
  }

  /// The memory that the request uses, in bytes, approximately.
  var size: Int { headers.bytes.count + body.count + 256 }

  /// The number of the queue that has the request, in its pool; 0 for none.
  var queueNumber: Int {
    get { member.load(ordering: .relaxed) }
    set { member.store(newValue, ordering: .relaxed) }
  }

  /// The stream on which the request was sent; 0 before. For the event loop that sends it.
  var upstreamStream: Int32 {
    get { sentOn.load(ordering: .relaxed) }
    set { sentOn.store(newValue, ordering: .relaxed) }
  }

  /// Whether the request will not be sent.
  var isCanceled: Bool { state.load(ordering: .acquiring) == State.canceled }

  /// Cancels the request and returns whether nothing of it was sent.
  func cancel() -> Bool { state.exchange(from: State.waiting, to: State.canceled) }

  /// Returns whether the request may be sent now, and if so marks it as sent.
  func beginSending() -> Bool { state.exchange(from: State.waiting, to: State.sent) }
}

extension Atomic<UInt8> {
  /// Replaces the value if it is `expected`, and returns whether it was.
  fileprivate borrowing func exchange(from expected: UInt8, to new: UInt8) -> Bool {
    compareExchange(expected: expected, desired: new, ordering: .acquiringAndReleasing).exchanged
  }
}

/// The receiver of the answers to the requests of one provider connection.
final class UpstreamReceiver: Sendable {
  /// The event loop of the provider's connection.
  let eventLoop: any EventLoop
  private let receive: @Sendable ([(stream: Int32, answer: UpstreamAnswer)]) -> Void

  /// - Parameter receive: Called on the event loop with the answers that arrived together.
  init(
    on eventLoop: any EventLoop, _ receive: @escaping @Sendable ([(stream: Int32, answer: UpstreamAnswer)]) -> Void
  ) {
    self.eventLoop = eventLoop
    self.receive = receive
  }

  /// Passes on answers, from any thread.
  func complete(_ answers: [(stream: Int32, answer: UpstreamAnswer)]) {
    eventLoop.execute { [receive] in receive(answers) }
  }
}

/// The body of a rejection (Protocol.md, section 7.1).
private struct RejectionBody {
  /// The reason, at most 64 characters.
  var reason: String
  /// The time in milliseconds since 1970 of a 410.
  var timestamp: Int64?

  /// The largest body that is read, in bytes.
  private static let sizeLimit = 1024

  /// Reads the body of a response; nil if it is none of APNs.
  init?(_ body: [UInt8]) {
    guard body.count <= Self.sizeLimit else { return nil }
    var reason: String?
    var timestamp: Int64?
    let isValid = body.withUnsafeBytes { bytes -> Bool in
      var json = JSONReader(bytes)
      do throws(JSONText.Problem) {
        if let problem = JSONText.problem(in: bytes) { throw problem }
        try json.object { name, json throws(JSONText.Problem) in
          switch name {
          case "reason": reason = try json.text()
          case "timestamp": timestamp = try json.unlessNull { json throws(JSONText.Problem) in try json.whole() }
          default: break
          }
        }
        return true
      } catch { return false }
    }
    guard isValid, let reason else { return nil }
    self.reason = String(reason.prefix(64))
    self.timestamp = timestamp
  }
}
