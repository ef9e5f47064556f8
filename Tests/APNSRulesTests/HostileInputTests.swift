import APNSMockRules
import APNSMockDevices
import APNSMockHTTPMessage
import APNSMockTestSupport
import Testing

/// Hostile input: always a response, bounded work, no crash.
struct HostileInputTests {
  @Test func headerListTooLarge() {
    var push = TestPush()
    push.headersTooLarge = true
    let verdict = push.validate()
    #expect(verdict.status == 431)
    #expect(verdict.reason == nil)
    #expect(verdict.failed == .headerListSize)
    #expect(verdict.checks.map(\.check) == [.headerListSize])
    #expect(verdict.checks.map(\.ok) == [false])
    #expect(!verdict.isAccepted)
  }

  /// More fields than fit into 8000 bytes by HTTP/2's size rule are too many, even if the HTTP/2 layer did not report
  /// it.
  @Test func tooManyFields() {
    var push = TestPush()
    push.fields += (0..<239).map { ("x\($0)", "") }
    #expect(push.fields.count == 250)
    expect(push.validate(), nil)
    push.fields += (0..<5000).map { ("y\($0)", "") }
    #expect(push.validate().status == 431)
  }

  /// 200 unusual fields whose names all fall into one bin, without and with a repeated name at the end.
  @Test func oddFields() {
    var push = TestPush()
    let names = (0..<200).map { "x-\(String(repeating: "a", count: $0 % 50))-\($0)-x" }
    push.fields += names.map { ($0, "v") }
    expect(push.validate(), nil)
    push.fields.append((names[0], "w"))
    expect(push.validate(), .duplicateHeaders)
  }

  /// A valid request with each byte of each value replaced always gets a response.
  @Test(arguments: TestPush().fields.map(\.name)) func everyByte(_ name: String) throws {
    let good = try #require(TestPush()[name])
    for index in good.utf8.indices {
      for byte: UInt8 in [0x00, 0x20, 0x2e, 0x41, 0x7f, 0x80, 0xff] {
        var value = Array(good.utf8)
        value[good.utf8.distance(from: good.utf8.startIndex, to: index)] = byte
        let push = TestPush()
        var headers = HeaderList(push.fields.filter { $0.name != name })
        name.withBytes { name in value.withUnsafeBytes { _ = headers.append(name: name, value: $0) }
        }
        var authentication = ConnectionAuthentication()
        let verdict = push.rulebook.validate(
          HTTPRequest(headers: headers, body: push.body), authentication: &authentication, keys: push.keys,
          now: push.now)
        #expect(verdict.status == 200 || verdict.reason?.status == verdict.status)
        let isChanged = value != Array(good.utf8)
        if name == "authorization", isChanged, index > good.utf8.firstIndex(of: 0x20) ?? index,
          byte != 0x41
        {
          #expect(verdict.reason == .invalidProviderToken)
        }
      }
    }
  }

  /// A valid token that is truncated at any position is never valid.
  @Test func everyPrefixOfAToken() {
    let whole = TestToken().authorization
    for size in 0..<whole.utf8.count {
      var push = TestPush()
      push["authorization"] = String(whole.prefix(size))
      // An empty value and the word bearer alone count as no token.
      let isMissing = [0, 6, 7].contains(size)
      expect(push.validate(), isMissing ? .missingProviderToken : .invalidProviderToken)
    }
  }

  /// Extreme clocks and settings.
  @Test(arguments: [Int64.min, -1, 0, Int64.max]) func extremeClocks(_ now: Int64) {
    for setting in [Duration.zero, .seconds(Int64.max), .seconds(Int64.min)] {
      var push = TestPush()
      push.settings.tokenMaxAge = setting
      push.settings.tokenFuture = setting
      push.settings.tokenUpdateInterval = setting
      push.settings.unregisteredAfter = setting
      push.tokens.append(SingleToken(token: TestPush.deviceToken, state: .unregistered, since: now))
      push.now = now
      for iat in ["1699999999", "1699999998", "99999999999999", "-99999999999999"] {
        push.token = TestToken(iat: iat)
        #expect([200, 403, 410, 429].contains(push.validate().status))
      }
    }
  }

  /// 2000 tokens on one connection: the number of remembered tokens is bounded, and the newest is among them.
  @Test func manyTokens() {
    var push = TestPush()
    push.settings.freeTokenUpdates = .max
    let counter = Counter()
    push.trustedKeys = [FakeSignature.key(verifications: counter)]
    for number in 0..<2000 {
      push.token = TestToken(iat: "\(TestPush.nowSeconds - Int64(number))")
      expect(push.validate(), nil)
    }
    expect(push.validate(), nil)
    #expect(counter.value == 2000)
  }
}
