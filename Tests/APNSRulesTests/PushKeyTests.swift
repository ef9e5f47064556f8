import APNSMockRules
import APNSMockHTTPMessage
import Testing

/// Push keys: pushes that differ have different keys.
@Suite struct PushKeyTests {
  static func key(
    token: String = "ab12", topic: String? = "com.acme.app", type: String? = "alert", collapse: String? = nil,
    id: String? = nil, body: [UInt8] = [], bodySize: Int? = nil, defaultTopic: String? = nil, usesID: Bool = false
  ) -> PushKey {
    var fields = [(":method", "POST"), (":path", "/3/device/" + token)]
    for (name, value) in [
      ("apns-topic", topic), ("apns-push-type", type), ("apns-collapse-id", collapse), ("apns-id", id),
    ] {
      if let value { fields.append((name, value)) }
    }
    var request = HTTPRequest(stream: 1, headers: HeaderList(fields), body: body)
    if let bodySize { request.bodySize = bodySize }
    return PushKey(request, PushFacts(request.headers), defaultTopic: defaultTopic, usesID: usesID)
  }

  /// Keys are stable across versions, because random draws depend on them. The expected values come from another
  /// program.
  @Test(arguments: [
    (key(collapse: "c", body: Array("{}".utf8)), "717659db80b230a1"),
    (key(token: "AB1200", type: nil, body: Array(repeating: UInt8(ascii: "a"), count: 1000)), "d4a9b68c8af27450"),
    (key(), "d72abf0c0ccaf463"),
    (
      key(topic: nil, body: Array(repeating: UInt8(ascii: "x"), count: 5), bodySize: 9000),
      "a7a995d912d346b9"
    ),
  ])
  func isTheSameInEveryVersion(key: PushKey, text: String) {
    #expect(key.text == text)
  }

  /// Each length is hashed by a different path through the last bytes.
  @Test func everyByteAndEveryLengthCounts() {
    var seen: Set<PushKey> = []
    var count = 0
    for length in Array(0...150) + [255, 256, 257, 1024, 5120] {
      var body = Array(repeating: UInt8(ascii: "a"), count: length)
      seen.insert(Self.key(body: body))
      for index in body.indices {
        body[index] = UInt8(ascii: "b")
        seen.insert(Self.key(body: body))
        body[index] = UInt8(ascii: "a")
      }
      count += 1 + length
    }
    #expect(seen.count == count)
  }

  /// Changing a single bit changes each bit of the key about half of the time.
  @Test(arguments: [1, 3, 7, 8, 15, 16, 17, 33, 64, 128, 129, 200, 1024])
  func oneBitChangesHalfOfTheKey(length: Int) {
    var body = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37) }
    let whole = Self.key(body: body).number
    var changes = [Int](repeating: 0, count: 64)
    var tries = 0
    for index in body.indices {
      for bit in 0..<8 {
        body[index] ^= 1 << bit
        let changed = Self.key(body: body).number ^ whole
        body[index] ^= 1 << bit
        // Six standard deviations of 64 coin tosses.
        #expect((8...56).contains(changed.nonzeroBitCount), "byte \(index), bit \(bit)")
        for place in 0..<64 where changed & 1 << place != 0 { changes[place] += 1 }
        tries += 1
      }
    }
    let deviation = 3 * Double(tries).squareRoot()
    #expect(changes.allSatisfy { abs(Double($0) - Double(tries) / 2) <= deviation })
  }

  /// Pushes numbered as in a test run: in the body, in the token, in both.
  @Test func similarPushesHaveDifferentKeys() {
    let count = 400_000
    var headers = HeaderList([
      (":path", "/3/device/" + String(repeating: "0", count: 64)), ("apns-topic", "com.acme.app"),
      ("apns-push-type", "alert"),
    ])
    let facts = PushFacts(headers)
    var path: ByteRange?
    headers.forEachField { name, value in if path == nil { path = value } }
    var body = Array(#"{"aps":{"alert":"Hello"},"number":"........"}"#.utf8)
    var seen: Set<UInt64> = []
    seen.reserveCapacity(count)
    let digits = Array("0123456789abcdef".utf8)
    func write(_ number: Int, before end: Int, into bytes: UnsafeMutableBufferPointer<UInt8>) {
      for place in 0..<5 { bytes[end - 1 - place] = digits[number >> (4 * place) & 15] }
    }
    for number in 0..<count {
      // Four pushes per device, with different bodies.
      if let path { headers.withMutableValue(path) { write(number / 4, before: $0.count, into: $0) } }
      body.withUnsafeMutableBufferPointer { write(number % 4 + number / 8 * 4, before: $0.count - 2, into: $0) }
      seen.insert(PushKey(HTTPRequest(headers: headers, body: body), facts, defaultTopic: nil).number)
    }
    #expect(seen.count == count)
    // The halves of the keys collide as random numbers do: of 4.29 billion values, 400,000 have 19 pairs.
    #expect((5...40).contains(count - Set(seen.map { UInt32(truncatingIfNeeded: $0) }).count))
    #expect((5...40).contains(count - Set(seen.map { UInt32(truncatingIfNeeded: $0 >> 32) }).count))
  }

  @Test func deviceTokenIsCaseInsensitive() {
    for length in 1...70 {
      let token = String(repeating: "aB3", count: 30).prefix(length)
      #expect(Self.key(token: token.uppercased()) == Self.key(token: token.lowercased()))
      let other = token.dropLast() + "c"
      #expect(Self.key(token: String(other)) != Self.key(token: String(token)) || other == token)
    }
  }

  @Test func partsOfThePushKeyAreDelimited() {
    let all = [
      Self.key(), Self.key(topic: "com.acme.appalert", type: nil), Self.key(topic: nil, type: "com.acme.appalert"),
      Self.key(topic: nil), Self.key(topic: "com.acme.appa", type: "lert"),
      Self.key(topic: "com.acme.ap", type: "palert"), Self.key(topic: "alert", type: "com.acme.app"),
      Self.key(type: nil, collapse: "alert"), Self.key(type: nil), Self.key(collapse: "x"),
      Self.key(body: Array("x".utf8)), Self.key(collapse: "x", body: Array("x".utf8)),
      Self.key(collapse: "xx"), Self.key(body: Array("xx".utf8)), Self.key(topic: "com.acme.App"),
      Self.key(token: "ab1", topic: "2com.acme.app"), Self.key(token: "ab12com", topic: ".acme.app"),
    ]
    #expect(Set(all).count == all.count)
  }

  /// Swapping two blocks of a body changes the key.
  @Test func positionsMatter() {
    let parts = (0..<16).map { part in Array(repeating: UInt8(part), count: 16) }
    let whole = Self.key(body: parts.flatMap(\.self))
    var seen: Set<PushKey> = [whole]
    for one in parts.indices {
      for other in parts.indices where other > one {
        var swapped = parts
        swapped.swapAt(one, other)
        seen.insert(Self.key(body: swapped.flatMap(\.self)))
      }
    }
    #expect(seen.count == 1 + 16 * 15 / 2)
  }

  /// An empty push type or collapse id equals a missing one; an empty topic differs, because it prevents the use of
  /// the certificate's topic.
  @Test func emptyHeadersInThePushKey() {
    #expect(Self.key(collapse: "") == Self.key())
    #expect(Self.key(type: "", body: [0]) == Self.key(type: nil, body: [0]))
    #expect(Self.key(topic: "") != Self.key(topic: nil))
    #expect(Self.key(topic: "", defaultTopic: "com.acme.app") == Self.key(topic: ""))
    // Which part is missing makes a difference.
    #expect(Set([Self.key(topic: nil), Self.key(type: nil), Self.key(topic: nil, type: nil), Self.key()]).count == 4)
  }

  /// A body that is too long is not kept completely, but its length is part of the key.
  @Test func lengthMatters() {
    #expect(Self.key(body: [1], bodySize: 9000) != Self.key(body: [1], bodySize: 9001))
    #expect(Self.key(body: [1], bodySize: 9000) != Self.key(body: [1]))
  }

  @Test func defaultTopicEqualsExplicitTopic() {
    #expect(Self.key(topic: nil, defaultTopic: "com.acme.app") == Self.key())
    #expect(Self.key(defaultTopic: "org.other") == Self.key())
  }

  @Test func apnsIDIdentifiesThePushIfRequested() {
    let id = "27cfdc15-e305-27e0-e290-8fc98e115899"
    func key(id: String?, body: String) -> PushKey { Self.key(id: id, body: Array(body.utf8), usesID: true) }
    #expect(key(id: id, body: "a") == key(id: id.uppercased(), body: "b"))
    #expect(key(id: id, body: "a") != key(id: "a" + id.dropFirst(), body: "a"))
    #expect(key(id: nil, body: "a") != key(id: nil, body: "b"))
    #expect(Self.key(id: id) == Self.key())
  }

  // MARK: - Text

  @Test(
    arguments: [
      (0, "0000000000000000"), (.max, "ffffffffffffffff"), (0x0123_4567_89AB_CDEF, "0123456789abcdef"),
      (9, "0000000000000009"),
      (0xA000_0000_0000_0000, "a000000000000000"), (0xFEDC_BA98_7654_3210, "fedcba9876543210"),
    ] as [(UInt64, String)])
  func textHasSixteenDigits(number: UInt64, text: String) {
    #expect(PushKey(number: number).text == text)
    #expect(PushKey(text: text)?.number == number)
    #expect(PushKey(text: text.uppercased())?.number == number)
    #expect(PushKey(number: number).withText { $0.elementsEqual(text.utf8) })
  }

  @Test(arguments: [
    "", "0", "123456789abcdef", "0123456789abcdef0", "+123456789abcdef", "-123456789abcdef", "0123456789abcdeg",
    "0x23456789abcdef", " 123456789abcdef", "５678901234567890", "00112233445566778899aabbccddeeff",
  ])
  func invalidTextIsNil(text: String) {
    #expect(PushKey(text: text) == nil)
  }
}
