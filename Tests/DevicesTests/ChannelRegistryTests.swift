import APNSMockRules
import APNSMockDevices
import APNSMockTestSupport
import Testing

/// Reservation, limits, order and reset of broadcast channels.
struct ChannelRegistryTests {
  private static let app = "com.example.app"

  private static func registry() -> ChannelRegistry { ChannelRegistry { "id\($0)" } }

  private static func description(
    _ id: String, of app: String = app, _ environment: PushEnvironment = .sandbox, policy: Int = 0
  ) -> ChannelDescription {
    ChannelDescription(bundleID: app, environment: environment, id: id, messageStoragePolicy: policy)
  }

  @Test func reservedChannelsExistOnceTheyAreCreated() throws {
    let registry = Self.registry()
    let name = try registry.reserve(Self.app, in: .sandbox)
    #expect(name.id == "id1")
    #expect(registry.storagePolicy(of: name) == nil)
    registry.create(name, .newest)
    #expect(registry.storagePolicy(of: name) == .newest)
    let other = ChannelName(bundleID: Self.app, environment: .production, id: "id1")
    #expect(registry.storagePolicy(of: other) == nil, "the same id in the other environment is another channel")
    #expect(registry.remove(name))
    #expect(!registry.remove(name))
    #expect(registry.count == 0)
  }

  /// Ids in use are skipped, and ids are not used again after a release, a removal or a reset.
  @Test func idsAreNotRepeated() throws {
    let registry = Self.registry()
    try registry.add([Self.description("id1")])
    registry.release(try registry.reserve(Self.app, in: .sandbox))
    let third = try registry.reserve(Self.app, in: .sandbox)
    #expect(third.id == "id3")
    registry.create(third, .none)
    registry.reset()
    #expect(registry.count == 0)
    #expect(try registry.reserve(Self.app, in: .sandbox).id == "id4")
  }

  /// Reservations count toward the limit of an app, released ones do not; other apps and environments are not affected.
  @Test func theLimitOfAnApp() throws {
    let registry = Self.registry()
    let limit = ChannelDescription.limit
    try registry.add((1..<limit).map { Self.description("given\($0)") })
    let last = try registry.reserve(Self.app, in: .sandbox)
    #expect(throws: ChannelLimit.ofApp(limit)) { try registry.reserve(Self.app, in: .sandbox) }
    #expect(throws: ChannelLimit.ofApp(limit)) { try registry.add([Self.description("given")]) }
    #expect(try registry.add([Self.description("given1", policy: 1)]) == 0, "replacing one is possible")
    _ = try registry.reserve(Self.app, in: .production)
    _ = try registry.reserve("com.example.other", in: .sandbox)
    registry.release(last)
    registry.create(try registry.reserve(Self.app, in: .sandbox), .none)
    #expect(registry.count == limit)
  }

  @Test func channelsAreAddedAllOrNone() throws {
    let registry = Self.registry()
    let limit = ChannelDescription.limit
    try registry.add([Self.description("kept")])
    let tooMany = [Self.description("new", of: "com.example.other")] + (0..<limit).map { Self.description("\($0)") }
    #expect(throws: ChannelLimit.ofApp(limit)) { try registry.add(tooMany) }
    #expect(registry.channels().map(\.id) == ["kept"])
  }

  @Test func theLimitOfTheServer() throws {
    let registry = Self.registry()
    let perApp = ChannelDescription.limit
    for app in 0..<ChannelRegistry.limit / perApp {
      try registry.add((0..<perApp).map { Self.description("\($0)", of: "com.example.app\(app)") })
    }
    #expect(registry.count == ChannelRegistry.limit)
    #expect(throws: ChannelLimit.ofServer(ChannelRegistry.limit)) { try registry.reserve(Self.app, in: .sandbox) }
  }

  /// Apps with reserved channels count, each environment on its own; a removed channel makes room for another app.
  @Test func theLimitOfApps() throws {
    let registry = Self.registry()
    let limit = ChannelRegistry.appLimit
    try registry.add((2..<limit).map { Self.description("c", of: "com.example.app\($0)") })
    try registry.add([Self.description("c", of: "com.example.app2", .production)])
    let last = try registry.reserve("com.example.last", in: .sandbox)
    #expect(throws: ChannelLimit.apps(limit)) { try registry.reserve("com.example.other", in: .sandbox) }
    #expect(throws: ChannelLimit.apps(limit)) { try registry.add([Self.description("c", of: "com.example.other")]) }
    #expect(throws: ChannelLimit.apps(limit)) { try registry.reserve("com.example.last", in: .production) }
    #expect("\(ChannelLimit.apps(limit))" == "this server has channels of 10000 apps, which is its own limit")
    _ = try registry.reserve("com.example.last", in: .sandbox)
    _ = try registry.reserve("com.example.app2", in: .sandbox)
    registry.create(last, .none)
    #expect(throws: ChannelLimit.apps(limit)) { try registry.reserve("com.example.other", in: .sandbox) }
    #expect(registry.remove(ChannelName(bundleID: "com.example.app3", environment: .sandbox, id: "c")))
    _ = try registry.reserve("com.example.other", in: .sandbox)
  }

  /// Sorted by app, environment and creation; a replaced channel keeps its place.
  @Test func listsAreSorted() throws {
    let registry = Self.registry()
    try registry.add([
      Self.description("z", of: "com.b"), Self.description("a", of: "com.b"), Self.description("m", of: "com.a"),
      Self.description("p", of: "com.a", .production), Self.description("z", of: "com.b", policy: 1),
    ])
    #expect(registry.channels().map(\.id) == ["p", "m", "z", "a"])
    #expect(registry.channels(of: "com.b").map(\.messageStoragePolicy) == [1, 0])
    #expect(registry.channels(in: .production).map(\.id) == ["p"])
    #expect(registry.channels(of: "com.c").isEmpty)
  }

  @Test func resetRestoresTheInitialChannels() throws {
    let registry = Self.registry()
    try registry.add([Self.description("initial", policy: 1)])
    registry.saveAsInitial()
    try registry.add([Self.description("initial"), Self.description("added")])
    registry.reset()
    #expect(registry.channels() == [Self.description("initial", policy: 1)])
  }
}
