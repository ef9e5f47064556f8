import NIOConcurrencyHelpers
import APNSMockRules
import APNSMockTestSupport
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults
@testable import APNSMockInbox

/// One push in a scenario of a provider's behavior.
struct Step: Sendable {
  /// The time at which the push arrives, in milliseconds on both clocks.
  var at: Int64
  /// The result for the client: `400 BadTopic`, `200`; `lost` for no response, `taken` for no response to an accepted
  /// push, `refused` for RST_STREAM REFUSED_STREAM, `incomplete` and `malformed` for such requests, `goaway` for a GOAWAY that excludes the stream, `excluded` for a
  /// stream that arrives after such a GOAWAY, `pending`.
  var answer = "200"
  /// Whether the response comes from the rules of APNs and not from a fault.
  var byRules = false
  /// The latency of the response in milliseconds.
  var latency: Int64 = 1
  /// Identifies the push; becomes its alert text.
  var push = "a"
  var device = "ab12"
  var topic = "com.acme.app"
  var id: String?
  /// The number of the attempt.
  var attempt: Int32 = 1
  var connection = "c1"
  /// The `retry-after` header of the response.
  var retryAfter: String?
  /// `iat` in seconds before noon, and the prefix of the signature, which distinguishes JWTs with the same claims.
  var issued: Int64 = 0
  var signature = "A"
  var headers: [(String, String)] = []
  /// How the connection ends after the push.
  var closing: ConnectionFacts.CloseInitiator?
  /// Whether it ends by a reset.
  var resets = false
  /// How far the server's clock is ahead of the machine's, in milliseconds.
  var clock: Int64 = 0
}

/// An inbox filled with the pushes of a provider.
final class FindingsScenario {
  let inbox: Inbox
  private var connections: [String: ConnectionFacts] = [:]
  private let opened: Int64 = 1_000_000_000

  /// - Parameter now: The server's time in milliseconds since 1970.
  init(_ steps: [Step] = [], maxRecords: Int = 1000, now: Int64? = nil) {
    var clock: (@Sendable () -> Int64)?
    if let now { clock = { now } }
    inbox = Inbox(maxRecords: maxRecords, now: clock)
    for step in steps { add(step) }
  }

  /// Returns the numbers of the records that have findings of one kind.
  func earners(of kind: Finding.Kind) -> [Int] {
    findings(of: kind).map(\.seq)
  }

  /// Returns the findings of one kind.
  func findings(of kind: Finding.Kind) -> [Finding] {
    // Only a store cannot be read.
    let report = try? inbox.findings(by: PushFixture.rulebook, in: Selection())
    return report?.findings.filter { $0.kind == kind } ?? []
  }

  @discardableResult
  func add(_ step: Step) -> Int {
    let connection = connection(of: step)
    let record = fixture(of: step, on: connection).record
    let ended = opened + (step.at + step.latency) * 1_000_000
    if let initiator = step.closing {
      inbox.recordClose(
        of: connection,
        ConnectionEnd.Closing(
          by: initiator, at: ended, lastReceivedAt: opened + step.at * 1_000_000,
          isOrderly: initiator == .client && !step.resets, isReset: step.resets))
    }
    return inbox.append(record)
  }

  /// Finishes a pending push as the step describes.
  func end(_ seq: Int, as step: Step) {
    let fixture = fixture(of: step, on: connection(of: step))
    inbox.finish(
      seq,
      with: Record.Result(
        outcome: fixture.outcome ?? .accepted, accepted: fixture.accepted,
        sentResponse: fixture.sentResponse ?? .init(),
        wireDetails: fixture.wireDetails, finishedAt: fixture.now))
  }

  /// Closes a connection from the client's side.
  func end(connection id: String) { end(connection: id, ConnectionEnd.Closing(by: .client, at: 0, lastReceivedAt: 0)) }

  /// Closes a connection.
  func end(connection id: String, _ closing: ConnectionEnd.Closing) {
    if let connection = connections[id] { inbox.recordClose(of: connection, closing) }
  }

  /// The monotonic time of a step at these milliseconds.
  func time(_ milliseconds: Int64) -> Int64 { opened + milliseconds * 1_000_000 }

  private func connection(of step: Step) -> ConnectionFacts {
    if let known = connections[step.connection] { return known }
    let made = ConnectionFacts(
      id: step.connection, listener: 0, client: step.connection.hasPrefix("x") ? "192.0.2.7:1" : "127.0.0.1:52114",
      sni: nil, tls: "TLSv1.3", openedAt: opened + step.at * 1_000_000)
    connections[step.connection] = made
    return made
  }

  private func fixture(of step: Step, on connection: ConnectionFacts) -> PushFixture {
    PushFixture { push in
      push.body = Array(#"{"aps":{"alert":"\#(step.push)"}}"#.utf8)
      push.deviceToken = String(repeating: step.device, count: 16)
      push.headers = [("apns-topic", step.topic), ("apns-push-type", "alert")] + step.headers
      push.authorization = [
        PushFixture.authorization(
          issuedAt: PushFixture.noon / 1000 - step.issued,
          signature: step.signature + PushFixture.signature.dropFirst(step.signature.count))
      ]
      push.attempt = step.attempt
      push.connection = connection
      push.now = PushFixture.noon + step.at + step.clock
      push.arrivedAt = opened + step.at * 1_000_000
      push.generatedID = step.id ?? "\(step.at)-\(step.connection)"
      if let id = step.id {
        push.headers.append(("apns-id", id))
        push.generatedID = ""
      }
      Self.answer(step, &push)
    }
  }

  private static func answer(_ step: Step, _ push: inout PushFixture) {
    let ended = (push.arrivedAt ?? 0) + step.latency * 1_000_000
    switch step.answer {
    case "200": (push.outcome, push.accepted) = (.accepted, true)
    case "pending": (push.outcome, push.accepted) = (.pending, false)
    case "lost", "taken":
      (push.outcome, push.accepted) = step.answer == "taken" ? (.responseLost, true) : (.unanswered, false)
      push.sentResponse = Record.SentResponse()
      push.wireDetails = WireDetails(closed: .fin, endedAt: ended)
    case "refused":
      (push.outcome, push.accepted) = (.unprocessed, false)
      push.sentResponse = Record.SentResponse()
      push.wireDetails = WireDetails(reset: "REFUSED_STREAM", endedAt: ended)
    case "goaway":
      (push.outcome, push.accepted) = (.unprocessed, false)
      push.sentResponse = Record.SentResponse()
      push.wireDetails = WireDetails(
        goAway: WireDetails.GoAway(code: "NO_ERROR", lastStream: 1, debugData: ""), endedAt: ended)
    case "incomplete", "malformed":
      push.outcome = step.answer == "malformed" ? .malformed : .incomplete
      push.isComplete = false
      push.sentResponse = Record.SentResponse()
      push.body = []
    case "excluded":
      (push.outcome, push.accepted, push.isComplete) = (.unprocessed, false, false)
      push.sentResponse = Record.SentResponse()
    default:
      let parts = step.answer.split(separator: " ").map(String.init)
      (push.outcome, push.accepted) = (.rejected, false)
      push.sentResponse = Record.SentResponse(
        status: Int(parts[0]), reason: parts.count > 1 ? Reason(text: parts[1]) : nil,
        latencyNanoseconds: step.latency * 1_000_000)
      guard let asked = step.retryAfter else { return }
      push.wireDetails = WireDetails(injections: [injection(retryAfter: asked)])
    }
    if push.sentResponse == nil, step.answer == "200" {
      push.sentResponse = Record.SentResponse(status: 200, latencyNanoseconds: step.latency * 1_000_000)
    }
  }

  /// Returns the injection of a rule that responds with `retry-after`.
  private static func injection(retryAfter: String) -> Injection {
    let answer = Action.Response(
      status: 503, reason: nil, headers: [Action.Field(name: "retry-after", value: retryAfter)])
    return Injection(rule: "busy", action: .respond(answer), continues: false)
  }
}

extension Step: CustomTestStringConvertible {
  var testDescription: String { "\(at) ms \(push) \(answer)" }
}

extension FindingsAnalyzer {
  /// The `seq` of each record with evidence, in no order.
  var seqs: [Int] {
    state.withLockedValue { Array($0.own.findingsState.evidence.keys) } + deliveries.withLockedValue { Array($0.keys) }
  }
}
