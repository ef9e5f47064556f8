import APNSMockRules
import APNSMockNotation
import APNSMockTestSupport
import Testing

@testable import APNSMockDevices

struct FixtureReaderTests {
  private static let reader = FixtureReader(defaults: FixtureDefaults(environment: .sandbox, teamID: "MOCKTEAM01"))

  private static func document(_ text: String, _ name: String = "f.yaml") -> FixtureDocument {
    FixtureDocument(name: name, text: Array(text.utf8))
  }

  /// Loads texts and returns the contents and the devices.
  private static func load(
    _ texts: String..., reader: FixtureReader = reader
  ) throws -> (contents: FixtureReader.Contents, devices: [DeviceDescription]) {
    let registry = DeviceRegistry()
    var contents = FixtureReader.Contents()
    let documents = texts.enumerated().map { document($1, $0 == 0 ? "f.yaml" : "f\($0 + 1).yaml") }
    try registry.load(now: 0) { loader in
      contents = try reader.read(documents) { device throws(DeviceError) in try loader.add(device) }
    }
    return (contents, registry.devices(limit: 1000).items)
  }

  private static func problems(_ texts: String...) -> [String] {
    let documents = texts.enumerated().map { document($1, $0 == 0 ? "f.yaml" : "f\($0 + 1).yaml") }
    let failure = #expect(throws: FileFailure.self) { try reader.lint(documents, maxDevices: 3) }
    return failure?.problems.map(\.description) ?? []
  }

  /// Returns the device with its tokens in the order in which they are written.
  static func sorted(_ device: DeviceDescription) -> DeviceDescription {
    var device = device
    for index in device.apps.indices {
      device.apps[index].tokens.sort { $0.kind.rawValue < $1.kind.rawValue }
    }
    return device
  }

  @Test func sample() throws {
    let (contents, devices) = try Self.load(FixtureSample.yaml)
    #expect(contents.apps == [AppTable.App(bundleID: "com.example.app", teamID: "MOCKTEAM01", hasBroadcast: true)])
    #expect(contents.devices == 2)
    #expect(devices.map(\.id) == ["anna", "bert"])
    #expect(devices[1].state == .offline)
    #expect(devices[0].apps[0].tokens.map(\.kind) == [.alert, .voip, .liveactivity, .liveactivity])
    #expect(devices[0].apps[0].tokens[3].expiredAt == 1_769_860_800_000)
    #expect(contents.channels.map(\.id) == ["dHN0LXNyY2gtY2hubA=="])
  }

  @Test func defaultsAndEmptyLists() throws {
    var reader = Self.reader
    reader.defaults.environment = .production
    let (contents, devices) = try Self.load(
      "apps:\ndevices: [{id: a1-x, apps: [{bundle_id: com.x, tokens: {alert: AAbb}}]}]", reader: reader)
    #expect(contents.apps.isEmpty)
    #expect(devices[0].state == .online)
    #expect(
      devices[0].apps == [
        InstallationDescription(
          bundleID: "com.x", environment: .production, tokens: [TokenDescription(kind: .alert, token: "aabb")])
      ])
    #expect(try Self.load("# nothing").devices.isEmpty)
    #expect(try Self.load("{}").devices.isEmpty)
  }

  /// A document that is written and read again is the same.
  @Test func writing() throws {
    let registry = DeviceRegistry()
    var contents = FixtureReader.Contents()
    try registry.load(now: 0) { loader in
      contents = try Self.reader.read([Self.document(FixtureSample.yaml)]) { device throws(DeviceError) in
        try loader.add(device)
      }
    }
    let devices = registry.devices(limit: 10).items
    var writer = try FixtureWriter(
      apps: contents.apps, devices: registry, channels: contents.channels, teamID: "MOCKTEAM01")
    var json: [UInt8] = []
    while let piece = writer.next() { json += piece }
    #expect(json.withUnsafeBytes { JSONText.problem(in: $0) } == nil)
    let again = try Self.load(String(decoding: json, as: UTF8.self))
    #expect(again.contents.apps == contents.apps)
    #expect(again.contents.channels == contents.channels)
    #expect(again.devices == devices.map(Self.sorted))
    var reader = json.withUnsafeBytes { JSONNodeReader($0) }
    let yaml = try json.withUnsafeBytes { bytes in
      reader = JSONNodeReader(bytes)
      return try reader.node().yaml
    }
    #expect(try Self.load(yaml).devices == devices.map(Self.sorted))
  }

  @Test(arguments: [
    ("devces: []", #"f.yaml:1:1: devces: unknown, did you mean "devices"?"#),
    ("devices: {}", "f.yaml:1:10: devices: expected a list, not a map, begin each element with -, or use [ ]"),
    ("devices:\n  - state: online", "f.yaml:2:5: devices[0]: id is missing, add id: anna"),
    (
      "devices:\n  - {id: anna, state: onlin}",
      #"f.yaml:2:23: devices[0].state: unknown value "onlin", did you mean "online"?"#
    ),
    (
      "devices:\n  - id: c0ffee",
      #"f.yaml:2:9: devices[0].id: "c0ffee" is not the id of a device, it begins with a letter, has up to 64 letters, digits, _ and -, and is neither hexadecimal nor "notifications", such as anna or phone-1"#
    ),
    (
      "devices: [{id: x, apps: [{bundle_id: com.x, tokens: {alrt: aa}}]}]",
      #"f.yaml:1:54: devices[0].apps[0].tokens.alrt: unknown push type "alrt", did you mean "alert"?"#
    ),
    (
      "devices: [{id: x, apps: [{bundle_id: com.x, tokens: {alert: 74xy}}]}]",
      #"f.yaml:1:61: devices[0].apps[0].tokens.alert: "74xy" is not a device token, it is an even number of hexadecimal digits, 2 to 400 of them"#
    ),
    (
      "devices: [{id: x, apps: [{bundle_id: com.x.voip}]}]",
      #"f.yaml:1:38: devices[0].apps[0].bundle_id: "com.x.voip" ends in .voip, the suffix of the topic for voip pushes, write com.x; the type of a token determines the suffix"#
    ),
    (
      "devices: [{id: x, apps: [{bundle_id: com.x, tokens: {liveactivity: {token: aa, expired_at: 2026-02-30T00:00:00Z}}}]}]",
      #"f.yaml:1:92: devices[0].apps[0].tokens.liveactivity.expired_at: "2026-02-30T00:00:00Z" is not a time, write it as 2026-01-31T12:00:00Z, with a day that exists (RFC 3339)"#
    ),
    (
      "devices: [{id: x, apps: [{bundle_id: com.x, tokens: {liveactivity: [{token: aa, expired_at: 20000-01-01T00:00:00Z}]}}]}]",
      #"f.yaml:1:93: devices[0].apps[0].tokens.liveactivity[0].expired_at: "20000-01-01T00:00:00Z" is not a time, write it as 2026-01-31T12:00:00Z, with a day that exists (RFC 3339)"#
    ),
    (
      "apps: [{bundle_id: com.a}]\nchannels: [{bundle_id: com.b, id: AAAA, message_storage_policy: 0}]",
      #"f.yaml:2:24: channels[0].bundle_id: the app com.b is not in apps, did you mean "com.a"?"#
    ),
    (
      "channels: [{bundle_id: com.b, id: AAA, message_storage_policy: 2}]",
      #"f.yaml:1:35: channels[0].id: "AAA" is not a channel id, it is base64 with padding, such as dHN0LXNyY2gtY2hubA=="#
    ),
    (
      "apps: [{bundle_id: com.a}, {bundle_id: com.a, team_id: x}]",
      #"f.yaml:1:56: apps[1].team_id: "x" is not a team id, it has ten letters and digits, such as MOCKTEAM01"#
    ),
    (
      "apps: [{bundle_id: com.a}]\ndevices: [{id: x, apps: [{bundle_id: org.other}]}]",
      "f.yaml:2:38: devices[0].apps[0].bundle_id: the app org.other is not in apps, add it to apps: {bundle_id: org.other}"
    ),
    (
      "devices:\n- id: anna\n- id: anna",
      "f.yaml:3:7: devices[1].id: the device anna is already in line 2, each may occur once; remove one of them"
    ),
    (
      "devices:\n- {id: a-, apps: [{bundle_id: com.x, tokens: {alert: [aa, Aa]}}]}",
      "f.yaml:2:59: devices[0].apps[0].tokens.alert[1]: the device token aa is already in line 2, each may occur once; remove one of them"
    ),
    (
      "devices: [{id: x, apps: [{bundle_id: com.x}, {bundle_id: com.x}]}]",
      "f.yaml:1:46: devices[0].apps[1]: com.x (sandbox) occurs twice on x, keep one of them"
    ),
    (
      "devices: [{id: x}, {id: y}, {id: z}, {id: zz}, {id: zzz}]",
      "f.yaml:1:38: devices[3]: 3 devices are registered, which is the limit, remove devices that are no longer needed, or raise --max-devices"
    ),
    (#"{"devices": [{"id": "x"},]}"#, "f.yaml:1:26: invalid JSON: expected a value"),
    (
      "{\"devices\": [\n {\"id\": \"ä\",\n  \"id\": 1}]}", "f.yaml:3:3: duplicate key: id, keep one of them"
    ),
  ])
  func mistakes(text: String, problem: String) {
    let problems = Self.problems(text)
    #expect(problems.contains(problem), "\(problems)")
  }

  @Test func everyMistakeIsReported() {
    let problems = Self.problems(
      "devices:\n  - {id: 1, state: off, extra: 1}\n  - {id: b-, apps: [{bundle_id: a b}]}\nchannels: [{}]")
    #expect(problems.count == 7, "\(problems)")
  }

  @Test func duplicatesInSeveralFiles() {
    let problems = Self.problems(
      "devices:\n  - id: anna\n    apps: [{bundle_id: com.x, tokens: {alert: aabb}}]",
      #"{"devices": [{"id": "anna"}, {"id": "bert", "apps": [{"bundle_id": "com.x", "tokens": {"voip": "AABB"}}]}]}"#)
    #expect(
      problems == [
        "f2.yaml:1:21: devices[0].id: the device anna is already in f.yaml:2, each may occur once; remove one of them",
        "f2.yaml:1:96: devices[1].apps[0].tokens.voip: the device token aabb is already in f.yaml:3, each may occur once; remove one of them",
      ])
  }

  /// Live Activities have tokens of two kinds.
  @Test func pushToStartToken() throws {
    let (_, devices) = try Self.load(
      "devices: [{id: a-1, apps: [{bundle_id: com.x, tokens: {liveactivity: aa01, liveactivity_start: aa02}}]}]")
    #expect(Set(devices[0].apps[0].tokens.map(\.kind)) == [.liveactivity, .liveactivityStart])
    var writer = JSONWriter()
    writer.object { devices[0].writeMembers(to: &$0) }
    let text = String(decoding: writer.bytes, as: UTF8.self)
    #expect(text.contains(#"{"liveactivity":"aa01","liveactivity_start":"aa02"}"#), "\(text)")
    let (_, again) = try Self.load("{\"devices\":[\(text)]}")
    #expect(again.map(Self.sorted) == devices.map(Self.sorted))
    #expect(FixtureSchema.text.contains(#""liveactivity_start":{"anyOf""#))
  }

  @Test func conflictWithTheRegistry() throws {
    let registry = DeviceRegistry()
    try registry.load(now: 0) { loader in
      try loader.add(
        DeviceDescription(
          id: "carl",
          apps: [
            InstallationDescription(
              bundleID: "com.x", environment: .sandbox, tokens: [TokenDescription(kind: .alert, token: "aabb")])
          ]))
    }
    let text = "devices: [{id: carl}, {id: dora, apps: [{bundle_id: com.x, tokens: {alert: ccdd}}]}]"
    func load(_ text: String) throws {
      try registry.load(now: 0) { loader in
        _ = try Self.reader.read([Self.document(text)]) { device throws(DeviceError) in try loader.add(device) }
      }
    }
    #expect(throws: FileFailure.self) {
      try load("devices: [{id: x, apps: [{bundle_id: com.x, tokens: {alert: aabb}}]}]")
    }
    #expect(registry.device("x") == nil)
    try load(text)
    #expect(registry.device("carl")?.apps == [])
    #expect(registry.token("aabb") == nil)
    #expect(registry.token("ccdd") != nil)
  }

  @Test func largeYAML() {
    let text = "devices:\n" + String(repeating: "# a comment line\n", count: 1_000_000)
    #expect(
      Self.problems(text)
        == [
          "f.yaml: longer than 16 MiB, the limit for YAML, write it as JSON, {\"devices\": […]}, which is read piece by piece and has no limit"
        ])
  }

  @Test func schemaIsJSON() throws {
    var text = FixtureSchema.text
    #expect(text.withUTF8 { JSONText.problem(in: UnsafeRawBufferPointer($0)) } == nil)
    let root = try #require(try YAMLNode.parse(text))
    #expect(root["$ref"]?.text == "#/$defs/fixtures")
    let definitions = try #require(root["$defs"])
    #expect(try definitions["fixtures"]?["properties"]?.entries().map(\.key) == ["apps", "devices", "channels"])
    #expect(
      try definitions.entries().map(\.key)
        == ["fixtures", "app", "device", "channel", "installation", "tokens", "token"])
  }
}
