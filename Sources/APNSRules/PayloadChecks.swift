internal import Foundation
internal import HTTPMessage

/// Row 17 of Protocol.md, section 8.2: the body is present and within the limit of section 6.1. APNs does not
/// interpret it (section 6.2).
extension Rulebook {
  func checkPayload(_ request: HTTPRequest, _ facts: PushFacts) throws(Rejection) {
    guard request.bodySize > 0 else { throw Self.noPayload }
    guard request.bodySize <= facts.payloadLimit else { throw Self.largePayload }
    guard mode == .strict, Payload.parse(request.body) == nil else { return }
    throw Self.payloadIsNoJSON
  }

  private static let noPayload = Rejection(.payloadPresent, .payloadEmpty) { _, _ in
    "the push has no body: send the payload as JSON"
  }
  private static let largePayload = Rejection(
    .payloadSize, .payloadTooLarge,
    words: .ofBody { facts, bodySize in
      "the body has \(bodySize) bytes, at most \(facts.payloadLimit) are allowed for "
        + (facts.payloadLimit == PushType.usualPayloadLimit ? "this push type: shorten it" : "VoIP: shorten it")
    })
  private static let payloadIsNoJSON = Rejection(.payloadSyntax, .payloadEmpty) { _, _ in
    "the body is not JSON, which rules \"strict\" reject (APNs responds with 200 and the device shows nothing)"
  }
}

/// Payload parsing.
enum Payload {
  /// Parses JSON; nil if `body` is not valid JSON or has more than 512 levels of nesting.
  static func parse(_ body: [UInt8]) -> Any? {
    try? JSONSerialization.jsonObject(with: Data(body), options: .fragmentsAllowed)
  }
}
