import APNSMockRules
import APNSMockDevices
import APNSMockNotation
import APNSMockTestSupport
import Testing

/// What is saved can be loaded, and is the same then: registries after random changes.
struct FixtureRoundTripTests {
  /// A server's apps, devices and channels.
  struct Contents {
    var apps = AppTable()
    let devices = DeviceRegistry()
    /// Eight digits are valid Base64.
    let channels = ChannelRegistry { number in String(String(100_000_000 + number).dropFirst()) }

    /// Loads a document as a server does.
    mutating func load(_ text: [UInt8]) throws {
      let reader = FixtureReader(
        defaults: FixtureDefaults(environment: .sandbox, teamID: "MOCKTEAM01"), limits: FixtureReader.clientText,
        knownApps: apps)
      var read = FixtureReader.Contents()
      try devices.load(now: 0) { loader in
        read = try reader.read([FixtureDocument(name: "f", text: text)]) { device throws(DeviceError) in
          try loader.add(device)
        }
      }
      for app in read.apps { apps.set(app) }
      try channels.add(read.channels)
    }

    /// Saves everything.
    func saved() throws -> [UInt8] {
      var writer = try FixtureWriter(
        apps: apps.apps, devices: devices, channels: channels.channels(), teamID: "MOCKTEAM01")
      var json: [UInt8] = []
      while let piece = writer.next() { json += piece }
      return json
    }
  }

  /// Applies one random change that a client of the admin API, or a provider, can make.
  private func change(_ contents: inout Contents, _ random: inout SplitMix) {
    let devices = contents.devices
    let ids = ["anna", "bert", "null", "true", "y", "e-1", "x_" + String(repeating: "z", count: 62)]
    let id = ids.randomElement(using: &random) ?? ""
    let apps = ["com.acme.app", "com.other", "1.0", "null", "a_b-c.D", String(repeating: "b", count: 155)]
    let app = apps.randomElement(using: &random) ?? ""
    let environment = PushEnvironment.allCases.randomElement(using: &random)
    let times = [0, -1, 1_700_000_000_123, TimestampFormat.range.upperBound, TimestampFormat.range.lowerBound]
    let now = times.randomElement(using: &random) ?? 0
    let token = devices.tokens(limit: .max).items.randomElement(using: &random)?.token.token ?? "aa"
    // A change that is not possible changes nothing.
    switch Int.random(in: 0...11, using: &random) {
    case 0, 1:
      let kinds = TokenKind.allCases.filter { _ in Bool.random(using: &random) }
      _ = try? devices.install(
        app, environment, on: id, kinds: kinds, replaces: Bool.random(using: &random), now: now,
        makeToken: uniqueTokens(&random))
    case 2:
      let state = InstallationState.allCases.randomElement(using: &random) ?? .enabled
      _ = try? devices.setState(of: app, environment, on: id, state, now: now)
    case 3:
      _ = try? devices.setState(of: id, DeviceState.allCases.randomElement(using: &random) ?? .online, now: now)
    case 4, 5:
      for _ in 0..<Int.random(in: 1...80, using: &random) {
        guard
          let started = try? devices.startActivity(
            of: app, environment, on: id, now: now, makeToken: uniqueTokens(&random))
        else { break }
        _ = try? devices.expire(started.token.token, now: now)
      }
    case 6: _ = try? devices.expire(token, now: now)
    case 7:
      let state = SingleToken.State.allCases.randomElement(using: &random) ?? .online
      _ = try? devices.set(SingleToken(token: token, topic: app, environment: environment, state: state, since: now))
    case 8: _ = devices.remove(token)
    case 9: try? devices.removeDevice(id)
    case 10:
      if let channel = try? contents.channels.reserve(app, in: environment ?? .sandbox) {
        contents.channels.create(channel, Bool.random(using: &random) ? .newest : .none)
      }
    default:
      let hasBroadcast = Bool.random(using: &random)
      contents.apps.set(AppTable.App(bundleID: app, teamID: "MOCKTEAM01", hasBroadcast: hasBroadcast))
    }
  }

  private func uniqueTokens(_ random: inout SplitMix) -> () -> String {
    var local = SplitMix(state: random.next())
    return {
      let count = 4 * Int.random(in: 1...25, using: &local)
      return (0..<count).map { _ in String(Int.random(in: 0...255, using: &local) | 0x100, radix: 16).dropFirst() }
        .joined()
    }
  }

  @Test(arguments: 1...40 as ClosedRange<UInt64>) func savedFixturesCanBeLoaded(seed: UInt64) throws {
    var random = SplitMix(state: seed)
    var contents = Contents()
    for _ in 0..<Int.random(in: 1...200, using: &random) { change(&contents, &random) }
    let json = try contents.saved()
    var again = Contents()
    try again.load(json)
    #expect(try again.saved() == json)
    let expected = contents.devices.devices(limit: .max).items
    #expect(again.devices.devices(limit: .max).items == expected.map(FixtureReaderTests.sorted))
    #expect(again.channels.channels() == contents.channels.channels())

    // The same in YAML.
    let yaml = try json.withUnsafeBytes { bytes in
      var reader = JSONNodeReader(bytes)
      return try reader.node().yaml
    }
    var third = Contents()
    try third.load(Array(yaml.utf8))
    #expect(try third.saved() == json)

    // The file replaces what there is.
    try contents.load(json)
    #expect(try contents.saved() == json)
  }

  /// What a file cannot have is an error when it is saved.
  @Test func tooManyApps() throws {
    var contents = Contents()
    for number in 1...FixtureReader.appLimit {
      contents.apps.set(AppTable.App(bundleID: "com.a\(number)", teamID: "MOCKTEAM01"))
    }
    _ = try contents.saved()
    let channel = try contents.channels.reserve("com.other", in: .sandbox)
    contents.channels.create(channel, .none)
    #expect(throws: FileFailure.self) { try contents.saved() }
  }

  /// A copy is written, so that a device that is replaced while they are written is not written twice.
  @Test func changesWhileWriting() throws {
    let registry = DeviceRegistry()
    try registry.load(now: 0) { loader in
      for number in 1...500 { try loader.add(DeviceDescription(id: "d-\(number)")) }
    }
    var writer = try FixtureWriter(apps: [], devices: registry, channels: [], teamID: "MOCKTEAM01")
    var json: [UInt8] = []
    while let piece = writer.next() {
      json += piece
      try registry.removeDevice("d-1")
      try registry.load(now: 0) { try $0.add(DeviceDescription(id: "d-1")) }
      for id in ["d-499", "d-2"] where registry.device(id) != nil { try registry.removeDevice(id) }
    }
    var again = Contents()
    try again.load(json)
    #expect(again.devices.counts.devices == 500)
  }
}
