import APNSMockRules
import Testing

/// The table of reasons (Protocol.md, section 7.2), row by row.
struct ReasonTableTests {
  static let table: [(Int, String)] = [
    (400, "BadCollapseId"), (400, "BadDeviceToken"), (400, "BadExpirationDate"),
    (400, "BadMessageId"),
    (400, "BadPriority"), (400, "BadTopic"), (400, "DeviceTokenNotForTopic"),
    (400, "DuplicateHeaders"),
    (400, "IdleTimeout"), (400, "InvalidPushType"), (400, "MissingDeviceToken"),
    (400, "MissingTopic"),
    (400, "PayloadEmpty"), (400, "TopicDisallowed"), (403, "BadCertificate"),
    (403, "BadCertificateEnvironment"),
    (403, "BadEnvironmentKeyIdInToken"), (403, "BadEnvironmentKeyInToken"),
    (403, "ExpiredProviderToken"),
    (403, "Forbidden"), (403, "InvalidProviderToken"), (403, "MissingProviderToken"),
    (403, "UnrelatedKeyIdInToken"),
    (404, "BadPath"), (405, "MethodNotAllowed"), (410, "ExpiredToken"), (410, "Unregistered"),
    (413, "PayloadTooLarge"), (429, "TooManyProviderTokenUpdates"), (429, "TooManyRequests"),
    (500, "InternalServerError"), (503, "ServiceUnavailable"), (503, "Shutdown"),
    // Broadcasts and channel management (section 10.3)
    (400, "BadChannelId"), (400, "BadRequestParams"), (400, "BadRequestPayload"), (400, "CannotCreateChannelConfig"),
    (400, "ChannelNotRegistered"), (400, "FeatureNotEnabled"), (400, "MissingChannelId"),
    (400, "MissingChannelQueueSize"), (400, "MissingPushType"), (403, "TopicMismatch"),
  ]

  @Test(arguments: table) func row(_ status: Int, _ text: String) throws {
    let reason = try #require(Reason(text: text))
    #expect(reason.text == text)
    #expect(reason.status == status)
    #expect(!reason.when.isEmpty)
  }

  @Test(arguments: Reason.allCases) func bodiesAreCompactJSON(reason: Reason) {
    #expect(String(decoding: reason.body(), as: UTF8.self) == #"{"reason":"\#(reason.text)"}"#)
    #expect(
      String(decoding: reason.body(timestamp: 1_454_948_015_990), as: UTF8.self)
        == #"{"reason":"\#(reason.text)","timestamp":1454948015990}"#)
  }

  @Test(arguments: [0, 7, 10, -1, 1_454_948_015_990, Int64.max, Int64.min])
  func timestampsAreIntegers(timestamp: Int64) {
    #expect(
      String(decoding: Reason.unregistered.body(timestamp: timestamp), as: UTF8.self)
        == #"{"reason":"Unregistered","timestamp":\#(timestamp)}"#)
  }

  @Test func unknownReasonsAreNil() {
    #expect(Set(Reason.allCases.map(\.text)) == Set(Self.table.map(\.1)))
    #expect(Reason(text: "InvalidPayloadSize") == nil)
    #expect(Reason(text: "badtopic") == nil)
    #expect(Reason(text: "") == nil)
  }

  @Test func checkNames() {
    #expect(Check.allCases.first?.name == "method")
    #expect(Set(Check.allCases.map(\.name)).count == Check.allCases.count)
    #expect(Check.allCases.allSatisfy { $0.name.allSatisfy { $0.isLowercase || $0 == "_" } })
  }
}
