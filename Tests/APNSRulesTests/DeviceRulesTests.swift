import APNSMockRules
import APNSMockDevices
import APNSMockTestSupport
import Testing

/// The device registry (Protocol.md, sections 8.2 and 11).
struct DeviceRulesTests {
  static let since: Int64 = 1_699_999_000_123

  static func register(
    _ push: inout TestPush, topic: String? = nil, environment: PushEnvironment? = nil,
    state: SingleToken.State = .online
  ) {
    push.tokens.append(
      SingleToken(
        token: TestPush.deviceToken, topic: topic, environment: environment, state: state,
        since: since))
  }

  @Test(arguments: rows) func device(_ row: Row) {
    let verdict = row.validate()
    expect(verdict, row.reason)
    #expect(verdict.timestamp == (verdict.status == 410 ? Self.since : nil))
  }

  static let rows: [Row] = [
    Row.always("online", nil) { register(&$0) },
    Row.always("of this environment", nil) { register(&$0, environment: .sandbox) },
    Row.always("of the other environment", .badDeviceToken) {
      register(&$0, environment: .production)
    },
    Row.always("of this environment, production", nil) {
      $0.environment = .production
      register(&$0, environment: .production)
    },
    Row.always("of the other environment, production", .badDeviceToken) {
      $0.environment = .production
      register(&$0, environment: .sandbox)
    },
    Row.always("of this topic", nil) { register(&$0, topic: TestPush.topic) },
    Row.always("of another topic", .deviceTokenNotForTopic) {
      register(&$0, topic: "com.example.other")
    },
    Row.always("of this topic's VoIP", .deviceTokenNotForTopic) {
      register(&$0, topic: TestPush.topic + ".voip")
    },
    Row.always("of this topic in another case", .deviceTokenNotForTopic) {
      register(&$0, topic: "Com.example.app")
    },
    Row.always("expired", .expiredToken) { register(&$0, state: .expired) },
    Row.always("unregistered", .unregistered) { register(&$0, state: .unregistered) },
    Row.always("another device is unregistered", nil) {
      $0.tokens.append(SingleToken(token: "00", state: .unregistered, since: since))
    },
    Row.always("pushed to in upper case", .unregistered) {
      register(&$0, state: .unregistered)
      $0[":path"] = "/3/device/" + TestPush.deviceToken.uppercased()
    },
    Row.always("registered in upper case", .unregistered) {
      $0.tokens.append(SingleToken(token: TestPush.deviceToken.uppercased(), state: .unregistered, since: since))
    },
  ].flatMap { $0 }

  /// The response becomes 410 exactly `unregistered_after` after the device was unregistered, to the millisecond;
  /// expired tokens do not wait.
  @Test func unregisteredAfter() {
    var push = TestPush()
    push.settings.unregisteredAfter = .seconds(60)
    push.tokens.append(SingleToken(token: TestPush.deviceToken, state: .unregistered, since: push.now))
    expect(push.validate(), nil)
    push.now += 59_999
    expect(push.validate(), nil)
    push.now += 1
    let verdict = push.validate()
    expect(verdict, .unregistered)
    #expect(verdict.timestamp == TestPush.nowSeconds * 1000)
    push.tokens = [SingleToken(token: TestPush.deviceToken, state: .expired, since: push.now)]
    expect(push.validate(), .expiredToken)
  }

  @Test(arguments: [
    ("ab", true), ("AB12", true), ("", false), ("abc", false), ("zz", false), ("ab ", false),
  ])
  func form(_ text: String, _ isWellFormed: Bool) {
    #expect(DeviceToken.isWellFormed(text) == isWellFormed)
  }

  /// Every byte value at every position, in tokens of whole words of eight bytes and in tokens with a remainder.
  @Test(arguments: [2, 8, 10, 14, 16, 64]) func everyByte(_ count: Int) {
    for index in 0..<count {
      for byte in UInt8.min...UInt8.max {
        var token = [UInt8](repeating: 0x61, count: count)
        token[index] = byte
        let isDigit = Character(Unicode.Scalar(byte)).isHexDigit
        #expect(token.withUnsafeBytes { DeviceToken.isWellFormed($0) } == isDigit, "\(byte) at \(index) of \(count)")
      }
    }
  }
}
