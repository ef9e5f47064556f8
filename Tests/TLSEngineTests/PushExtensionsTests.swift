import Testing

@testable import APNSMockTLSEngine

/// The list of topics in a certificate, which comes from an untrusted peer.
@Suite struct PushExtensionsTests {
  private static let a: [UInt8] = [0x0C, 0x01, 0x61]

  @Test(arguments: [0, 1, 2, 3, 40, 400])
  func topicsRoundTrip(count: Int) {
    let topics = (0..<count).map { "com.example.app\($0)" + ($0 % 2 == 0 ? ".voip" : "") }
    #expect(PushExtensions.decodeTopics(PushExtensions.encode(topics: topics)) == topics)
  }

  /// Extensions …6.3.3 and …6.3.4 contain a string; a list of topics is accepted as well.
  @Test(
    arguments: [
      (a, ["a"]), ([0x16, 0x01, 0x61], ["a"]), ([0x30, 0x06] + a + a, ["a", "a"]), ([], []), (a + a, []),
      (a + [0x00], []),
      ([0x0C, 0x02, 0x61], []), ([0x05, 0x00], []), ([0x0C, 0x01, 0xFF], []), ([0x30, 0x03] + a + [0x00], []),
    ] as [([UInt8], [String])])
  func oneTopicOrSeveral(der: [UInt8], topics: [String]) {
    #expect(PushExtensions.decodeTopicOrTopics(der) == topics)
  }

  @Test func labelsFollowTheSuffix() {
    let encoded = PushExtensions.encode(topics: ["a", "a.voip", "a.complication"])
    for label in ["app", "voip", "complication"] {
      let element = [0x0C, UInt8(label.utf8.count)] + Array(label.utf8)
      #expect(encoded.firstRange(of: [0x30, UInt8(element.count)] + element) != nil)
    }
  }

  @Test(
    arguments: [
      [0x30, 0x03] + a, [0x30, 0x06] + a + [0x30, 0x01, 0xFF], [0x30, 0x03, 0x13, 0x01, 0x61],
      [0x30, 0x81, 0x03] + a, [0x30, 0x03, 0x16, 0x01, 0x61],
    ] as [[UInt8]])
  func listsOfOneTopic(der: [UInt8]) {
    #expect(PushExtensions.decodeTopics(der) == ["a"])
  }

  @Test(
    arguments: [
      [], [0x30], [0x30, 0x80], [0x30, 0x80] + a + [0x00, 0x00], [0x30, 0x04] + a, [0x30, 0x02] + a,
      [0x30, 0x03] + a + [0x00], a, [0x31, 0x03] + a, [0x30, 0x03, 0x02, 0x01, 0x61], [0x30, 0x03, 0x0C, 0x01, 0xFF],
      [0x30, 0x03, 0x0C, 0x7F, 0x61], [0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF], [0x30, 0x88, 0x7F, 0, 0, 0, 0, 0, 0, 0],
      [0x30, 0x83, 0xFF, 0xFF, 0xFF], [0x3F, 0x03] + a, [0x30, 0x02, 0x1F, 0x00],
    ] as [[UInt8]])
  func otherValuesAreNotLists(der: [UInt8]) {
    #expect(PushExtensions.decodeTopics(der) == nil)
  }
}
