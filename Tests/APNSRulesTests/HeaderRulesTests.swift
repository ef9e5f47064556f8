import APNSMockRules
import APNSMockTestSupport
import Testing

/// The syntax of a request (Protocol.md, section 2), each row in each mode.
struct HeaderRulesTests {
  @Test(arguments: rows) func header(_ row: Row) { expect(row.validate(), row.reason) }

  static let rows: [Row] = [
    Row.always("the good push", nil) { _ in },
    // :method
    Row.always("GET", .methodNotAllowed) { $0[":method"] = "GET" },
    Row.always("HEAD", .methodNotAllowed) { $0[":method"] = "HEAD" },
    Row.always("post in lower case", .methodNotAllowed) { $0[":method"] = "post" },
    Row.always("no method", .methodNotAllowed) { $0[":method"] = nil },
    // :path
    Row.always("path /", .badPath) { $0[":path"] = "/" },
    Row.always("no path", .badPath) { $0[":path"] = nil },
    Row.always("path /3/device", .badPath) { $0[":path"] = "/3/device" },
    Row.always("path /2/device/…", .badPath) { $0[":path"] = "/2/device/" + TestPush.deviceToken },
    Row.each(["/4/broadcast/apps/x", "/1/app/x", "/1/apps"], "another path, no credential", .badPath) {
      $0[":path"] = $1
      $0["authorization"] = nil
    },
    Row.always("path /3/device/", .missingDeviceToken) { $0[":path"] = "/3/device/" },
    // The device token
    Row.always("two digits", nil) { $0[":path"] = "/3/device/ab" },
    Row.always("upper case", nil) {
      $0[":path"] = "/3/device/" + TestPush.deviceToken.uppercased()
    },
    Row.always("108 digits", nil) {
      $0[":path"] = "/3/device/" + String(repeating: "0", count: 108)
    },
    Row.always("160 digits", nil) {
      $0[":path"] = "/3/device/" + String(repeating: "f", count: 160)
    },
    Row.always("400 digits", nil) {
      $0[":path"] = "/3/device/" + String(repeating: "9", count: 400)
    },
    Row.always("402 digits", .badDeviceToken) {
      $0[":path"] = "/3/device/" + String(repeating: "9", count: 402)
    },
    Row.always("63 digits", .badDeviceToken) {
      $0[":path"] = "/3/device/" + TestPush.deviceToken.dropLast()
    },
    Row.always("not hexadecimal", .badDeviceToken) { $0[":path"] = "/3/device/zz" },
    Row.always("base64", .badDeviceToken) { $0[":path"] = "/3/device/q83vEjRWeJA=" },
    Row.always("percent escape", .badDeviceToken) { $0[":path"] = "/3/device/%61b" },
    Row.always("bad percent escape", .badDeviceToken) { $0[":path"] = "/3/device/ab%zz" },
    Row.always("query", .badDeviceToken) { $0[":path"] = "/3/device/ab?c=d1" },
    Row.always("slash after it", .badDeviceToken) { $0[":path"] = "/3/device/abc/" },
    // The ASCII neighbors of the digits: : / @ G ` g
    Row.each([":", "/", "@", "G", "`", "g"], "character", .badDeviceToken) {
      $0[":path"] = "/3/device/a" + $1
    },
    // authorization, in token mode
    Row.always("no authorization", .missingProviderToken) { $0["authorization"] = nil },
    Row.always("empty authorization", .missingProviderToken) { $0["authorization"] = "" },
    Row.always("the word bearer alone", .missingProviderToken) { $0["authorization"] = "Bearer" },
    Row.always("the word bearer and spaces", .missingProviderToken) {
      $0["authorization"] = "bearer   "
    },
    // apns-topic
    Row.always("no topic", .missingTopic) { $0["apns-topic"] = nil },
    Row.always("empty topic", .missingTopic) { $0["apns-topic"] = "" },
    Row.each(
      [
        "com.example.app", "MYCOMPANY1.app", "abcdefghij.com.example", "ABCDEFGHI.com.example",
        "MOCKTEAM012.com.example",
      ],
      "topic", nil
    ) { $0["apns-topic"] = $1 },
    Row.always("a team prefix that a topic-specific key lists", nil) {
      $0.trustedKeys = [FakeSignature.key(topics: ["A1B2C3D4E5.com.x"])]
      $0["apns-topic"] = "A1B2C3D4E5.com.x"
    },
    Row.always("a placeholder, with a certificate", .topicDisallowed) {
      $0.useCertificate()
      $0["apns-topic"] = "<com.example.app>"
    },
    // apns-push-type
    Row.always("unknown type", .invalidPushType) { $0["apns-push-type"] = "banner" },
    Row.always("type in upper case", .invalidPushType) { $0["apns-push-type"] = "Alert" },
    // apns-id
    Row.always("no id", nil) { $0["apns-id"] = nil },
    Row.always("empty id", nil) { $0["apns-id"] = "" },
    Row.always("id in upper case", nil) { $0["apns-id"] = "9D3220FE-444B-633E-D1F1-5D0DCB4F537A" },
    Row.always("id too short", .badMessageId) {
      $0["apns-id"] = "12345678-90ab-cdef-1234-567890abcde"
    },
    Row.always("id without hyphens", .badMessageId) {
      $0["apns-id"] = "1234567890abcdef1234567890abcdef"
    },
    Row.always("id with moved hyphen", .badMessageId) {
      $0["apns-id"] = "1234567-890ab-cdef-1234-567890abcdef"
    },
    Row.always("id in braces", .badMessageId) {
      $0["apns-id"] = "{2345678-90ab-cdef-1234-567890abcde}"
    },
    Row.always("id not hexadecimal", .badMessageId) {
      $0["apns-id"] = "12345678-90ab-cdef-1234-567890abcdeg"
    },
    // apns-expiration
    Row.always("no expiration", nil) { $0["apns-expiration"] = nil },
    Row.always("empty expiration", nil) { $0["apns-expiration"] = "" },
    Row.always("a past expiration", nil) { $0["apns-expiration"] = "1" },
    Row.always("expiration in milliseconds", nil) { $0["apns-expiration"] = "1700000000000" },
    Row.always("the largest expiration", nil) { $0["apns-expiration"] = "9223372036854775807" },
    Row.each(["9223372036854775808", "999999999999999999999999999999"], "large expiration", nil) {
      $0["apns-expiration"] = $1
    },
    Row.each(
      [
        "99999999999999999999x", "-99999999999999999999", "-1", "+1", "1.5", "1e9", " 1", "1 ", "soon",
        "0x10", "１",
      ],
      "expiration", .badExpirationDate
    ) { $0["apns-expiration"] = $1 },
    // apns-priority
    Row.always("no priority", nil) {
      $0["apns-priority"] = nil
    },
    Row.each(["10", "5", "1"], "priority", nil) { $0["apns-priority"] = $1 },
    Row.each(["", "0", "2", "05", "10 ", "high", "100", "-5"], "priority", .badPriority) {
      $0["apns-priority"] = $1
    },
    // apns-collapse-id: bytes, not characters
    Row.always("collapse id of 64 bytes", nil) {
      $0["apns-collapse-id"] = String(repeating: "a", count: 64)
    },
    Row.always("collapse id of 65 bytes", .badCollapseId) {
      $0["apns-collapse-id"] = String(repeating: "a", count: 65)
    },
    Row.always("collapse id of 32 characters in 64 bytes", nil) {
      $0["apns-collapse-id"] = String(repeating: "ä", count: 32)
    },
    Row.always("collapse id of 33 characters in 66 bytes", .badCollapseId) {
      $0["apns-collapse-id"] = String(repeating: "ä", count: 33)
    },
    Row.always("empty collapse id", nil) { $0["apns-collapse-id"] = "" },
    // Repeated headers
    Row.each(
      [
        "authorization", "apns-topic", "apns-id", "apns-priority", "apns-expiration",
        "apns-push-type", "content-type",
      ],
      "twice, equal", .duplicateHeaders
    ) { $0.fields.append(($1, $0[$1] ?? "")) },
    Row.always("apns-topic twice, different", .duplicateHeaders) {
      $0.fields.append(("apns-topic", "com.other"))
    },
    Row.always("an unknown name twice", .duplicateHeaders) {
      $0.fields += [("x-a", "1"), ("x-b", "2"), ("x-a", "3")]
    },
    Row.always("an empty value repeated", .duplicateHeaders) {
      $0["apns-collapse-id"] = ""
      $0.fields.append(("apns-collapse-id", ""))
    },
    Row.always("cookie twice", nil) { $0.fields += [("cookie", "a=1"), ("cookie", "b=2")] },
    Row.always("names alike but different", nil) {
      $0.fields += [
        ("ab", ""), ("ba", ""), ("abc", ""), ("acb", ""), ("x-apns-id", ""), ("apns-ix", ""),
        ("", ""),
      ]
    },
    // Without effect (section 1.2)
    Row.always("no content-type", nil) { $0["content-type"] = nil },
    Row.always("curl's content-type", nil) {
      $0["content-type"] = "application/x-www-form-urlencoded"
    },
    Row.always("host instead of :authority", nil) {
      $0[":authority"] = nil
      $0["host"] = "localhost"
    },
    Row.always("unknown headers", nil) {
      $0.fields += [("x-trace", "1"), ("user-agent", "test"), ("te", "trailers")]
    },
  ].flatMap { $0 }
}
