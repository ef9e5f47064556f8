import APNSMockRules
import APNSMockFaultModel
import APNSMockInbox
import APNSMockNotation

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// An attempt of a provider to send a push, with the response of the server.
public struct ReceivedPush: Sendable, Identifiable, Equatable, CustomStringConvertible {
  /// The ways in which an attempt ends.
  public enum Outcome: String, Sendable, CaseIterable {
    /// APNs accepted the push, and the client has the response.
    case accepted
    /// APNs rejected the push, and the client has the response.
    case rejected
    /// APNs decided, and the client has no complete response.
    case responseLost = "response_lost"
    /// The push was not processed, and the client cannot know it.
    case unanswered
    /// The push was not processed, and the client knows it.
    case unprocessed
    /// The request never became complete.
    case incomplete
    /// The request is malformed.
    case malformed
    /// The attempt has not ended.
    case pending
    /// The push was forwarded to upstream and no answer came, or a record of an older format does not say it.
    case unknown
  }

  private let record: Record
  private let rulebook: Rulebook

  init(_ record: Record, _ rulebook: Rulebook) {
    self.record = record
    self.rulebook = rulebook
  }

  /// The number of the attempt among all that the server received: 1, 2, 3 … in the order of arrival.
  public var seq: Int { record.seq }
  /// The same as `seq`.
  public var id: Int { record.seq }
  /// The number of this attempt among the attempts of the same push, from 1.
  public var attempt: Int { Int(record.attempt) }
  /// The time when the request was complete, by the server's clock.
  public var receivedAt: Date { Date(timeIntervalSince1970: Double(record.receivedAt) / 1000) }
  /// The time when the request was complete, by a monotonic clock: for the delay between two attempts, which moving
  /// the server's clock does not affect.
  public var arrival: Duration { .nanoseconds(record.arrivedAt) }

  /// `push`, `broadcast` or `channel`.
  public var kind: String { record.kind.rawValue }
  /// The environment of the listener that received the push.
  public var environment: MockServer.Environment {
    record.connection.environment == .production ? .production : .sandbox
  }
  /// The last state of the delivery to a registered device, such as `Delivered to Device`; nil without one.
  public var delivery: String? { record.delivery?.text }
  /// What APNs did with the push, such as `not_processed`.
  public var decision: String { record.end.decision.rawValue }
  /// What the client was told, such as `response` or `refused`.
  public var ending: String { record.end.ending.rawValue }
  /// The device token in lower-case hexadecimal, whether well formed or not; nil if the path has none.
  public var deviceToken: String? { record.deviceToken }
  /// The `apns-id`: the client's, or the one that the server generated.
  public var apnsID: String? { record.apnsID }
  /// The topic: the client's `apns-topic`, or the only one of its provider certificate.
  public var topic: String? { record.topic }
  /// The `apns-push-type`, valid or not.
  public var pushType: String? { record.pushType }
  /// The priority, 10 without an `apns-priority`; nil if that header is invalid.
  public var priority: Int? { record.priority.map(Int.init) }
  /// The `apns-expiration`.
  public var expiration: Date? { record.facts.expiration.map { Date(timeIntervalSince1970: Double($0)) } }
  /// The `apns-collapse-id`.
  public var collapseID: String? { record.collapseID }
  /// The header fields in order of arrival. The signature of a provider token is replaced by an ellipsis.
  public var headers: [(name: String, value: String)] { record.headers }
  /// The body, of which the first 5120 bytes are kept.
  public var payload: [UInt8] { record.body }

  /// Returns the first value of a header field, whose name may be in any case; nil if there is none.
  public func header(_ name: String) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }

  /// Decodes the payload from JSON.
  ///
  /// - Throws: The error of the decoder, also for a body of which only the first 5120 bytes are kept.
  public func payload<Value: Decodable>(
    as type: Value.Type, decoder: JSONDecoder = JSONDecoder()
  ) throws -> Value {
    try decoder.decode(type, from: Data(payload))
  }

  /// How the attempt ended.
  public var outcome: Outcome { Outcome(rawValue: record.outcome.rawValue) ?? .unknown }
  /// Whether APNs accepted the push, regardless of what the client learned of it.
  public var isAccepted: Bool { record.accepted }
  /// The HTTP status of the response; nil if none was sent.
  public var status: Int? { record.sentResponse.status.map(Int.init) }
  /// The reason in the response, such as `BadDeviceToken`; nil without one.
  public var reason: String? { record.sentReason }
  /// The name of the fault rule that affected the push, or ended its connection; nil without a fault.
  public var faultRule: String? { record.wireDetails?.injections.first?.rule }

  /// The push as a JSON object, with the members that the admin API documents.
  public var json: String {
    var writer = JSONWriter()
    record.write(to: &writer, rulebook: rulebook)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// Returns whether two values describe the same push in the same state.
  public static func == (left: ReceivedPush, right: ReceivedPush) -> Bool { left.json == right.json }

  /// The push on one line, with an abbreviated device token.
  public var description: String {
    let device = deviceToken.map { " to \(DeviceToken.abbreviated($0))" } ?? ""
    let result = status.map { "\($0)" + (reason.map { " \($0)" } ?? "") } ?? "no response"
    return "push \(seq), attempt \(attempt)\(device): \(outcome.rawValue), \(result)"
  }
}

/// A mistake of the provider that one of its pushes shows.
public struct ProviderFinding: Sendable, Equatable, CustomStringConvertible {
  /// The name of the finding, such as `retried-410`.
  public let name: String
  /// The `seq` of the push.
  public let seq: Int
  /// The `seq` of the pushes that prove the finding.
  public let evidence: [Int]
  /// What happened.
  public let explanation: String

  init(_ finding: Finding) {
    name = finding.kind.rawValue
    seq = finding.seq
    evidence = finding.evidence
    explanation = finding.explanation
  }

  /// The finding on one line.
  public var description: String { "\(name), push \(seq): \(explanation)" }
}
