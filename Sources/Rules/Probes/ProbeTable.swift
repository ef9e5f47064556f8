extension ProtocolProbe {
  /// All probes, in the order in which they are sent: those that need another provider token last.
  package static let all: [ProtocolProbe] = {
    var table = ProbeTable()
    table.addRequestProbes()
    table.addHeaderProbes()
    table.addTypeProbes()
    table.addPayloadProbes()
    table.addOrderProbes()
    table.addDeviceProbes()
    table.addTokenProbes()
    return table.probes
  }()
}

/// A list of probes while it is made.
private struct ProbeTable {
  var probes: [ProtocolProbe] = []

  /// The answer to a request with which nothing is wrong but its device token.
  private static let base = Reason.badDeviceToken

  /// Adds a probe.
  ///
  /// - Parameters:
  ///   - reason: The reason of the answer; nil for one without a reason.
  ///   - status: The status of an answer without a reason.
  mutating func add(
    _ name: String, _ section: String, _ fact: String, need: ProtocolProbe.Need = .nothing, _ reason: Reason? = base,
    status: Int = 200, _ change: (inout ProbeRequest) -> Void
  ) {
    var request = ProbeRequest()
    change(&request)
    probes.append(
      ProtocolProbe(
        name: name, fact: ProtocolProbe.Fact(section: section, text: fact), need: need, fields: request.fields,
        body: request.body, status: reason?.status ?? status, reason: reason))
  }

  // MARK: - Method, path, device token

  mutating func addRequestProbes() {
    add("base", "8.1", "64 zeros are 400 `BadDeviceToken` after all other checks") { _ in }
    for method in ["GET", "PUT", "DELETE", "OPTIONS", "PATCH", "post"] {
      add("method/\(method)", "2", "a method other than `POST` is 405 `MethodNotAllowed`", .methodNotAllowed) {
        $0[":method"] = method
      }
    }
    let paths = [
      "/", "/3", "/3/", "/3/devices/\(ProtocolProbe.zeros)", "/2/device/\(ProtocolProbe.zeros)",
      "/3/Device/\(ProtocolProbe.zeros)",
      "/device/\(ProtocolProbe.zeros)", "/4/device/\(ProtocolProbe.zeros)", "//3/device/\(ProtocolProbe.zeros)",
    ]
    for (index, path) in paths.enumerated() {
      add("path/\(index + 1)", "2", "another path is 404 `BadPath`", .badPath) { $0[":path"] = path }
    }
    add("device-token/absent", "2", "a path without device token is 400 `MissingDeviceToken`", .missingDeviceToken) {
      $0.setDeviceToken("")
    }
    let z = ProtocolProbe.zeros
    let tokens: [(String, String)] = [
      ("one-digit", "0"), ("odd", String(z.dropLast())), ("letter-g", "g" + z.dropLast()),
      ("brackets", "%3C\(z.prefix(60))%3E"), ("space", "00000000%20\(z.dropFirst(8))"),
      ("hyphens", "00000000-\(z.dropFirst(9))"),
      ("percent", "%30\(z.dropFirst())"), ("base64", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
      ("uuid", "00000000-0000-0000-0000-000000000000"),
      ("nul", "%00"), ("0x", "0x\(z.dropLast(2))"), ("plus", "+\(z.dropLast())"), ("dot", "."),
      ("unicode", "%C3%A9\(z.dropLast())"),
      ("text", "my-device-token"), ("null", "null"), ("undefined", "undefined"), ("slash", "\(z)/"),
      ("query", "\(z)?a=1"),
      ("too-long", String(repeating: "0", count: 402)),
    ]
    for (name, token) in tokens {
      add("device-token/\(name)", "2", "a malformed device token is 400 `BadDeviceToken`") { $0.setDeviceToken(token) }
    }
  }

  // MARK: - Header fields

  mutating func addHeaderProbes() {
    for (name, value) in [("absent", nil), ("empty", ""), ("scheme-only", "bearer"), ("scheme-and-space", "bearer ")] {
      add("authorization/\(name)", "2", "no provider token is 403 `MissingProviderToken`", .missingProviderToken) {
        $0["authorization"] = value
      }
    }
    for scheme in ["Bearer", "BEARER", "bearer "] {
      add("authorization/\(scheme)", "2", "the scheme `bearer` is not case-sensitive") {
        $0["authorization"] = "\(scheme) \(ProtocolProbe.Placeholder.providerToken)"
      }
    }
    addValues(
      of: "apns-id", "an `apns-id` that is not a UUID is 400 `BadMessageId`", .badMessageId,
      bad: [
        ("short", "1"), ("no-hyphens", "123e4567e89b12d3a456426614174000"),
        ("braces", "{123e4567-e89b-12d3-a456-426614174000}"),
        ("urn", "urn:uuid:123e4567-e89b-12d3-a456-426614174000"), ("letter-g", "g23e4567-e89b-12d3-a456-426614174000"),
        ("35-characters", "123e4567-e89b-12d3-a456-42661417400"),
        ("37-characters", "123e4567-e89b-12d3-a456-4266141740000"),
        ("text", "message-1"), ("hyphens-moved", "123e-4567e89b-12d3-a456-426614174000"),
      ],
      good: [
        ("lower-case", "123e4567-e89b-12d3-a456-426614174000"), ("upper-case", "123E4567-E89B-12D3-A456-426614174000"),
        ("nil", "00000000-0000-0000-0000-000000000000"), ("empty", ""),
      ])
    addValues(
      of: "apns-expiration", "an `apns-expiration` that is not a whole number is 400 `BadExpirationDate`",
      .badExpirationDate,
      bad: [
        ("negative", "-1"), ("fraction", "1700000000.5"), ("text", "tomorrow"), ("date", "2030-01-01T00:00:00Z"),
        ("exponent", "1e9"), ("hexadecimal", "0x10"), ("digits-and-letter", "100s"),
      ],
      good: [("zero", "0"), ("past", "1"), ("future", "4102444800"), ("milliseconds", "4102444800000"), ("empty", "")])
    addValues(
      of: "apns-priority", "an `apns-priority` other than 10, 5 and 1 is 400 `BadPriority`", .badPriority,
      bad: [
        ("0", "0"), ("2", "2"), ("7", "7"), ("11", "11"), ("negative", "-1"), ("high", "high"), ("10.0", "10.0"),
        ("010", "010"),
        ("empty", ""), ("100", "100"),
      ],
      good: [("1", "1"), ("5", "5"), ("10", "10")])
    addValues(
      of: "apns-collapse-id", "an `apns-collapse-id` over 64 bytes is 400 `BadCollapseId`", .badCollapseId,
      bad: [
        ("65-bytes", String(repeating: "c", count: 65)), ("200-bytes", String(repeating: "c", count: 200)),
        ("33-two-byte-letters", String(repeating: "é", count: 33)),
      ],
      good: [
        ("64-bytes", String(repeating: "c", count: 64)), ("32-two-byte-letters", String(repeating: "é", count: 32)),
        ("empty", ""),
        ("spaces", "a b"),
      ])
    addValues(
      of: "apns-topic", "no topic is 400 `MissingTopic`", .missingTopic, bad: [("absent", nil), ("empty", "")], good: []
    )
    addValues(
      of: "apns-topic", "a topic that the credential does not permit is 400 `TopicDisallowed`", .topicDisallowed,
      bad: [
        ("other", "com.example.probe.other"), ("angle-brackets", "<com.example>"),
        ("team-prefix", "ABCDE12345.\(ProtocolProbe.Placeholder.topic)"),
        ("suffix-x", "\(ProtocolProbe.Placeholder.topic).x"),
      ], good: [])
    addValues(
      of: "apns-topic", "a malformed topic is 400 `BadTopic`", .badTopic,
      bad: [("space", "com example"), ("256-bytes", String(repeating: "t", count: 256))], good: [])
    for name in [
      "authorization", "apns-id", "apns-topic", "apns-push-type", "apns-priority", "apns-expiration",
      "apns-collapse-id",
      "content-type", "user-agent", "x-probe",
    ] {
      add("repeated/\(name)", "2", "a repeated header field is 400 `DuplicateHeaders`", .duplicateHeaders) {
        let value = $0[name] ?? Self.valid[name] ?? "a"
        $0.fields.removeAll { $0.name == name }
        $0.fields += [(name, value), (name, value)]
      }
    }
    for (name, value) in [
      ("x-unknown", "1"), ("apns-unknown", "1"), ("content-type", "application/json"), ("content-type", "text/plain"),
      ("content-type", "application/x-www-form-urlencoded"), ("accept", "*/*"), ("accept-encoding", "gzip"),
      ("user-agent", "probe"),
    ] {
      add("ignored/\(name)/\(value)", "1.2", "other request header fields are ignored") { $0[name] = value }
    }
    add("header-list/8200-bytes", "2", "a header list over 8000 bytes is refused", nil, status: 431) {
      $0["x-long"] = String(repeating: "x", count: 8200)
    }
  }

  private static let valid = [
    "apns-id": "123e4567-e89b-12d3-a456-426614174000", "apns-priority": "10", "apns-expiration": "0",
    "apns-collapse-id": "c",
  ]

  private mutating func addValues(
    of field: String, _ fact: String, _ reason: Reason, bad: [(String, String?)], good: [(String, String)]
  ) {
    for (name, value) in bad { add("\(field)/\(name)", "2", fact, reason) { $0[field] = value } }
    for (name, value) in good {
      add("\(field)/\(name)", "2", "other values of `\(field)` are accepted") { $0[field] = value }
    }
  }

  // MARK: - Push types

  mutating func addTypeProbes() {
    for (index, value) in [
      "Alert", "ALERT", "alerts", "push", "silent", "unknown", "live-activity", "live_activity", "widget", "1",
      "alert ", "null",
    ].enumerated() {
      add("push-type/unknown/\(index + 1)", "5", "an unknown push type is 400 `InvalidPushType`", .invalidPushType) {
        $0["apns-push-type"] = value
      }
    }
    add("push-type/absent", "5", "a push type is not required") { $0["apns-push-type"] = nil }
    // `mdm` has topics of its own, and `location` needs a provider token.
    let types = PushType.allCases.filter { $0 != .mdm }
    for type in types {
      for other in types {
        let reason: Reason =
          type.topicSuffix == other.topicSuffix
          ? Self.base : other.topicSuffix.isEmpty ? .topicDisallowed : .invalidPushType
        let fact =
          reason == Self.base
          ? "a topic with the suffix of the push type is accepted"
          : "a topic with the suffix of another push type is 400 `InvalidPushType`, without suffix 400 `TopicDisallowed`"
        add("push-type/\(type.text)/\(other.text)", "5", fact, reason) {
          $0["apns-push-type"] = type.text
          $0["apns-topic"] = ProtocolProbe.Placeholder.topic + other.topicSuffix
          if type == .background { $0["apns-priority"] = "5" }
        }
      }
    }
  }

  // MARK: - Payload

  mutating func addPayloadProbes() {
    add("payload/none", "6.1", "no body is 400 `PayloadEmpty`", .payloadEmpty) { $0.body = [] }
    for count in [4097, 5000] {
      add("payload/\(count)", "6.1", "over 4096 bytes are 413 `PayloadTooLarge`", .payloadTooLarge) {
        $0.setBody(byteCount: count)
      }
    }
    add("payload/4096", "6.1", "4096 bytes are accepted") { $0.setBody(byteCount: 4096) }
    add("payload/voip-5120", "6.1", "a VoIP push may have 5120 bytes") {
      $0["apns-push-type"] = "voip"
      $0["apns-topic"] = ProtocolProbe.Placeholder.topic + PushType.voip.topicSuffix
      $0.setBody(byteCount: 5120)
    }
    let bodies = [
      ("text", "hello"), ("array", "[]"), ("number", "1"), ("null", "null"), ("empty-object", "{}"),
      ("cut", #"{"aps":"#),
      ("alert-number", #"{"aps":{"alert":1}}"#), ("no-aps", #"{"a":1}"#), ("space", " "),
      ("badge-text", #"{"aps":{"badge":"1"}}"#),
      ("sound-list", #"{"aps":{"sound":[]}}"#), ("two-aps", #"{"aps":{},"aps":{}}"#),
    ]
    for (name, body) in bodies {
      add("payload/\(name)", "6.2", "the content of the payload is not checked") { $0.body = Array(body.utf8) }
    }
  }

  // MARK: - Order of checks

  /// How to break each check, in the order of the checks.
  private static let breakers: [(name: String, reason: Reason, apply: @Sendable (inout ProbeRequest) -> Void)] = [
    ("method", .methodNotAllowed, { $0[":method"] = "GET" }),
    ("path", .badPath, { $0[":path"] = "/" }),
    ("repeated", .duplicateHeaders, { $0.fields += [("x-probe", "1"), ("x-probe", "2")] }),
    ("credential", .missingProviderToken, { $0["authorization"] = nil }),
    ("apns-id", .badMessageId, { $0["apns-id"] = "1" }),
    ("expiration", .badExpirationDate, { $0["apns-expiration"] = "x" }),
    ("priority", .badPriority, { $0["apns-priority"] = "7" }),
    ("collapse-id", .badCollapseId, { $0["apns-collapse-id"] = String(repeating: "c", count: 65) }),
    ("push-type", .invalidPushType, { $0["apns-push-type"] = "x" }),
    ("device-token", .badDeviceToken, { if $0[":path"] != "/" { $0.setDeviceToken("g") } }),
    ("topic", .missingTopic, { $0["apns-topic"] = nil }),
    ("payload-size", .payloadTooLarge, { $0.setBody(byteCount: 4097) }),
  ]

  mutating func addOrderProbes() {
    for (index, first) in Self.breakers.enumerated() {
      for second in Self.breakers.dropFirst(index + 1) {
        add(
          "order/\(first.name)/\(second.name)", "8.2", "the first failing check determines the response", first.reason
        ) {
          first.apply(&$0)
          second.apply(&$0)
        }
      }
    }
  }

  // MARK: - Probes that run only if they are asked for

  mutating func addDeviceProbes() {
    func background(_ request: inout ProbeRequest) {
      request["apns-push-type"] = "background"
      request["apns-priority"] = "5"
      request.body = Array(#"{"aps":{"content-available":1}}"#.utf8)
      request.setDeviceToken(ProtocolProbe.Placeholder.deviceToken)
    }
    let fact = "a valid push is 200 without a body"
    add("device/background", "7.1", fact, need: .device, nil) { background(&$0) }
    add("device/background-priority-10", "5", "`background` with priority 10 is accepted", need: .device, nil) {
      background(&$0)
      $0["apns-priority"] = "10"
    }
    add("device/not-json", "6", "a body that is not JSON is accepted", need: .device, nil) {
      background(&$0)
      $0.body = Array("x".utf8)
    }
  }

  mutating func addTokenProbes() {
    let token = ProtocolProbe.Placeholder.providerToken
    for (name, value) in [
      ("text", "bearer abc"), ("two-parts", "bearer e30.e30"), ("cut-signature", "bearer \(token)A"),
      ("basic", "Basic \(token)"),
      ("empty-parts", "bearer .."), ("no-scheme", token),
    ] {
      add(
        "provider-token/\(name)", "3.1", "a malformed provider token is 403 `InvalidProviderToken`",
        need: .providerTokens,
        .invalidProviderToken
      ) { $0["authorization"] = value }
    }
  }
}
