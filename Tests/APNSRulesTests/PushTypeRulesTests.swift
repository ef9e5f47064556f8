import APNSMockRules
import Testing

/// Push types: topic suffix, priorities and payload limit (Protocol.md, section 5).
struct PushTypeRulesTests {
  /// Push type, text, suffix, payload limit and documented priorities.
  static let table: [(type: PushType, text: String, suffix: String, limit: Int, priorities: Set<Int>)] = [
    (.alert, "alert", "", 4096, [10, 5, 1]),
    (.background, "background", "", 4096, [5]),
    (.complication, "complication", ".complication", 4096, [10, 5, 1]),
    (.controls, "controls", ".push-type.controls", 4096, [10, 5, 1]),
    (.fileprovider, "fileprovider", ".pushkit.fileprovider", 4096, [10, 5, 1]),
    (.liveactivity, "liveactivity", ".push-type.liveactivity", 4096, [10, 5]),
    (.location, "location", ".location-query", 4096, [10, 5]),
    (.mdm, "mdm", "", 4096, [10, 5, 1]),
    (.pushtotalk, "pushtotalk", ".voip-ptt", 4096, [10, 5, 1]),
    (.voip, "voip", ".voip", 5120, [10, 5, 1]),
    (.widgets, "widgets", ".push-type.widgets", 4096, [10, 5, 1]),
  ]

  @Test func tableIsComplete() {
    #expect(Set(Self.table.map(\.type)) == Set(PushType.allCases))
  }

  @Test(arguments: table.indices) func row(_ index: Int) {
    let row = Self.table[index]
    #expect(row.type.text == row.text)
    #expect(row.type.topicSuffix == row.suffix)
    #expect(row.type.payloadLimit == row.limit)
    for mode in RuleMode.allCases {
      var push = TestPush(mode: mode)
      if row.type == .mdm { push.useCertificate() }
      push.use(row.type)
      for priority in [10, 5, 1] {
        push["apns-priority"] = "\(priority)"
        let isRefused = mode == .strict && !row.priorities.contains(priority)
        expect(push.validate(), isRefused ? .badPriority : nil)
      }
    }
  }

  /// The topic of each type under each other type: another type's suffix is `InvalidPushType`, a missing one
  /// `TopicDisallowed`.
  @Test(arguments: PushType.allCases, PushType.allCases) func topicOfAnotherType(
    _ type: PushType, _ other: PushType
  ) {
    for mode in RuleMode.allCases {
      var push = TestPush(mode: mode)
      push.use(type)
      push["apns-topic"] = TestPush.topic + other.topicSuffix
      if type == .mdm { push.useCertificate(topics: [TestPush.topic + other.topicSuffix]) }
      let expected: Reason? =
        type.topicSuffix == other.topicSuffix
        ? nil : other.topicSuffix.isEmpty ? .topicDisallowed : .invalidPushType
      let verdict = push.validate()
      expect(verdict, expected)
      if expected != nil { #expect(verdict.failed == .topicForType) }
    }
  }

  /// Cases observed in section 5, and edge cases of the suffixes.
  @Test(arguments: rows) func mismatch(_ row: Row) { expect(row.validate(), row.reason) }

  static let rows: [Row] = [
    Row.always(".voip topic with type alert", .invalidPushType) {
      $0["apns-topic"] = "com.example.app.voip"
    },
    Row.always(".voip topic with type background", .invalidPushType) {
      $0.use(.background)
      $0["apns-topic"] = "com.example.app.voip"
    },
    Row.always("VoIP push with the bare bundle id", .topicDisallowed) {
      $0["apns-push-type"] = "voip"
    },
    Row.always(".voip-ptt is not .voip", .invalidPushType) {
      $0.use(.voip)
      $0["apns-topic"] = "com.example.app.voip-ptt"
    },
    Row.always("an unknown suffix with type voip", .topicDisallowed) {
      $0.use(.voip)
      $0["apns-topic"] = "com.example.app.voipx"
    },
    Row.always("an unknown suffix with type alert", nil) {
      $0["apns-topic"] = "com.example.app.voipx"
    },
    Row.always("a suffix in upper case", .topicDisallowed) {
      $0.use(.voip)
      $0["apns-topic"] = "com.example.app.VOIP"
    },
    Row.always("a suffix alone is a topic of its own", .topicDisallowed) {
      $0.use(.voip)
      $0["apns-topic"] = ".voip"
    },
    Row.always("the documentation's stray .complicationh", .topicDisallowed) {
      $0.use(.complication)
      $0["apns-topic"] = "com.example.app.complicationh"
    },
    Row.always("literal <com.example.app>, not of the certificate", .topicDisallowed) {
      $0.useCertificate()
      $0["apns-topic"] = "<com.example.app>"
    },
    Row.always("a team id before it, not of the certificate", .topicDisallowed) {
      $0.useCertificate()
      $0["apns-topic"] = "MOCKTEAM01.com.example.app"
    },
    Row.always("background payload as alert", nil) {
      $0.body = Array(#"{"aps":{"content-available":1}}"#.utf8)
    },
  ].flatMap { $0 }

  @Test func unknownTexts() {
    for text in ["", "Alert", "alert ", "alerts", "aler"] {
      #expect(text.withBytes { PushType($0) } == nil)
    }
  }
}

extension String {
  /// Calls `body` with the string's UTF-8 bytes, the form that the rules use.
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    var copy = self
    return copy.withUTF8 { body(UnsafeRawBufferPointer($0)) }
  }
}
