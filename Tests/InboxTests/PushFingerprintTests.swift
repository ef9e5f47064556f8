import APNSRules
import HTTPMessage
import Testing

@testable import Inbox

/// Pushes that differ anywhere have different fingerprints.
@Suite struct PushFingerprintTests {
  static func fingerprint(
    token: String = "ab12", topic: String? = "com.acme.app", type: String? = "alert", collapse: String? = nil,
    body: [UInt8] = [], defaultTopic: String? = nil
  ) -> PushFingerprint {
    var fields = [(":method", "POST"), (":path", "/3/device/" + token)]
    for (name, value) in [("apns-topic", topic), ("apns-push-type", type), ("apns-collapse-id", collapse)] {
      if let value { fields.append((name, value)) }
    }
    let request = HTTPRequest(stream: 1, headers: HeaderList(fields), body: body)
    return PushFingerprint(request, PushFacts(request.headers), defaultTopic: defaultTopic)
  }

  /// Every length takes another way through the bytes at its end.
  @Test func everyByteAndEveryLengthCounts() {
    var seen: Set<PushFingerprint> = []
    var count = 0
    for length in Array(0...150) + [255, 256, 257, 1024, 5120] {
      var body = Array(repeating: UInt8(ascii: "a"), count: length)
      seen.insert(Self.fingerprint(body: body))
      for index in body.indices {
        body[index] = UInt8(ascii: "b")
        seen.insert(Self.fingerprint(body: body))
        body[index] = UInt8(ascii: "a")
      }
      count += 1 + length
    }
    #expect(seen.count == count)
  }

  @Test func aDeviceTokenHasNoCase() {
    for length in 1...70 {
      let token = String(repeating: "aB3", count: 30).prefix(length)
      #expect(Self.fingerprint(token: token.uppercased()) == Self.fingerprint(token: token.lowercased()))
      let other = token.dropLast() + "c"
      #expect(Self.fingerprint(token: String(other)) != Self.fingerprint(token: String(token)) || other == token)
    }
  }

  @Test func partsDoNotTradeTheirBytes() {
    let all = [
      Self.fingerprint(), Self.fingerprint(topic: "com.acme.appalert", type: nil),
      Self.fingerprint(topic: nil, type: "com.acme.appalert"), Self.fingerprint(topic: nil),
      Self.fingerprint(type: nil, collapse: "alert"), Self.fingerprint(collapse: "x"),
      Self.fingerprint(body: Array("x".utf8)), Self.fingerprint(topic: "com.acme.App"),
      Self.fingerprint(token: "ab1", topic: "2com.acme.app"),
    ]
    #expect(Set(all).count == all.count)
  }

  @Test func aDefaultTopicIsATopic() {
    #expect(Self.fingerprint(topic: nil, defaultTopic: "com.acme.app") == Self.fingerprint())
    #expect(Self.fingerprint(defaultTopic: "org.other") == Self.fingerprint())
  }
}
