import APNSMockRules
import APNSMockDevices
import Foundation
import APNSMockNotation
import APNSMockTestSupport
import Testing

/// Live Activities on devices: started, updated and ended by pushes, and their tokens (Protocol.md, section 6.3).
struct ActivityTests {
  /// The time of the tests, in milliseconds since 1970.
  private static let noon: ServerTime = 1_893_499_200_000

  /// Returns the content of a valid push.
  ///
  /// - Parameters:
  ///   - now: The `timestamp`, in milliseconds since 1970.
  ///   - dismissal: `dismissal-date`, in seconds after `now`.
  static func content(_ event: ActivityContent.Event, at now: ServerTime, dismissal: Int64? = nil) -> ActivityContent? {
    let date = dismissal.map { ",\"dismissal-date\":\(now / 1000 + $0)" } ?? ""
    let payload = """
      {"aps":{"timestamp":\(now / 1000),"event":"\(event.rawValue)","content-state":{},"attributes-type":"Ride","attributes":{},
      "alert":"x"\(date)}}
      """
    return payload.withBytes { ActivityContent(payload: $0, at: now) }
  }

  /// The device `anna` with the push-to-start token `5a01`.
  private struct Fixture {
    let deliveries: DeliveryTests.Fixture

    init(_ state: DeviceState = .online) throws {
      deliveries = try DeliveryTests.Fixture(state)
      deliveries.now = ActivityTests.noon
      _ = try deliveries.registry.install(
        "com.acme.ride", .sandbox, on: "anna", kinds: [.liveactivityStart], replaces: false, now: 0
      ) { "5a01" }
      try deliveries.registry.beginWatching("anna")
    }

    var registry: DeviceRegistry { deliveries.registry }
    /// The tokens of the activities on the device.
    var tokens: [String] { registry.activities(on: "anna").map(\.token) }

    /// Sends a push with a `timestamp`, in seconds after noon.
    func push(
      _ event: ActivityContent.Event, to token: String, at seconds: Int64 = 0, dismissal: Int64? = nil
    ) throws {
      let content = try #require(
        ActivityTests.content(event, at: ActivityTests.noon + seconds * 1000, dismissal: dismissal))
      try deliveries.push(to: token, type: .liveactivity, activity: content)
    }

    /// Starts an activity by a push and returns its token.
    func start() throws -> String {
      let former = tokens
      try push(.start, to: "5a01")
      return try #require(tokens.first { !former.contains($0) })
    }

    /// The problems of pushes that were not shown, by `seq`, and the other push in the finding.
    var notShown: [Int: (problem: DisplayProblem, by: Int?)] {
      var found: [Int: (problem: DisplayProblem, by: Int?)] = [:]
      for event in deliveries.events {
        if case .notShown(let seq, let problem, let other) = event { found[seq] = (problem, other) }
      }
      return found
    }

    func status(of token: String) throws -> RegisteredToken.Status {
      try #require(token.withBytes { registry.match($0, now: deliveries.now) }).token.status
    }

    func events(_ kind: DeviceEvent.Kind) -> [DeviceEvent] { deliveries.deviceEvents.filter { $0.kind == kind } }
  }

  @Test func startCreatesAnActivityWithItsOwnToken() throws {
    let fixture = try Fixture()
    let token = try fixture.start()
    #expect(token.count == 160)
    #expect(fixture.registry.token(token)?.kind == .liveactivity)
    let activity = try #require(fixture.registry.activities(on: "anna").first)
    #expect(activity.attributesType == "Ride" && activity.startedBy == 1 && activity.startedAt == Self.noon)
    let event = try #require(fixture.events(.activityStarted).first)
    #expect(
      event.token == token && event.seq == 1 && event.attributesType == "Ride" && event.bundleID == "com.acme.ride")
    #expect(fixture.deliveries.deviceEvents.map(\.kind) == [.notification, .activityStarted])
    #expect(fixture.notShown.isEmpty)
    #expect(fixture.deliveries.shown == [1])
    let other = try fixture.start()
    #expect(other != token && fixture.tokens == [token, other])
    #expect(fixture.deliveries.shown == [1, 2], "each shows its own push")
  }

  @Test func updatesReplaceWhatIsShown() throws {
    let fixture = try Fixture()
    let token = try fixture.start()
    try fixture.push(.update, to: token, at: 10)
    try fixture.push(.update, to: token, at: 10)
    #expect(fixture.deliveries.shown == [3])
    try fixture.push(.update, to: token, at: 9)
    #expect(fixture.deliveries.shown == [3])
    let (problem, by) = try #require(fixture.notShown[4])
    let noon = Double(Self.noon / 1000)
    #expect(problem == .olderThanShown(timestamp: noon + 9, shown: noon + 10) && by == 3)
    try fixture.push(.update, to: token, at: 11)
    #expect(fixture.notShown.count == 1 && fixture.deliveries.shown == [5])
  }

  @Test func eachKindOfTokenHasItsEvents() throws {
    let fixture = try Fixture()
    let token = try fixture.start()
    try fixture.push(.start, to: token)
    try fixture.push(.update, to: "5a01")
    try fixture.push(.end, to: "5a01")
    #expect(fixture.notShown[2]?.problem == .startToActivityToken)
    #expect(fixture.notShown[3]?.problem == .updateToStartToken(event: "update"))
    #expect(fixture.notShown[4]?.problem == .updateToStartToken(event: "end"))
    #expect(fixture.tokens == [token] && fixture.deliveries.shown == [1])
  }

  /// Without a dismissal date, or with one that is over, the activity disappears at once.
  @Test(arguments: [nil, 0, -60] as [Int64?]) func endExpiresTheToken(_ dismissal: Int64?) throws {
    let fixture = try Fixture()
    let token = try fixture.start()
    try fixture.push(.end, to: token, dismissal: dismissal)
    #expect(try fixture.status(of: token) == .expired(since: Self.noon))
    #expect(fixture.tokens.isEmpty && fixture.deliveries.shown.isEmpty && fixture.notShown.isEmpty)
    let event = try #require(fixture.events(.activityEnded).first)
    #expect(event.token == token && event.seq == 2 && event.dismissedAt == Self.noon && event.attributesType == "Ride")
  }

  @Test func dismissalDateExpiresTheToken() throws {
    let fixture = try Fixture()
    let token = try fixture.start()
    try fixture.push(.end, to: token, at: 1, dismissal: 60)
    #expect(fixture.deliveries.shown == [2], "the last content stays on the screen")
    try fixture.push(.update, to: token, at: 2)
    #expect(fixture.notShown[3]?.problem == .activityEnded(event: "update") && fixture.notShown[3]?.by == 2)
    fixture.deliveries.now += 60_999
    #expect(fixture.registry.advance(to: fixture.deliveries.now).events.isEmpty)
    #expect(try fixture.status(of: token) == .active)
    fixture.deliveries.now += 1
    // Also before `advance` is called.
    #expect(try fixture.status(of: token) == .expired(since: Self.noon + 61_000))
    _ = fixture.registry.advance(to: fixture.deliveries.now + 5)
    #expect(fixture.registry.token(token)?.token.state == .expired)
    #expect(fixture.registry.token(token)?.token.since == Self.noon + 61_000)
    #expect(fixture.tokens.isEmpty && fixture.deliveries.shown.isEmpty)
  }

  /// An ended activity stays for four hours at most, whatever its date.
  @Test func dismissalIsLimited() throws {
    let fixture = try Fixture()
    let token = try fixture.start()
    try fixture.push(.end, to: token, dismissal: 365 * 86_400)
    #expect(fixture.registry.activities(on: "anna").first?.dismissedAt == Self.noon + 4 * 3_600_000)
    // Ends need no memory in the long run, and the last one counts.
    for _ in 0..<5000 { try fixture.push(.end, to: token, dismissal: 365 * 86_400) }
    try fixture.push(.end, to: token, dismissal: 1)
    #expect(fixture.registry.advance(to: Self.noon + 1000).isComplete)
    #expect(fixture.tokens.isEmpty)
  }

  @Test func rotationMovesTheActivity() throws {
    let fixture = try Fixture()
    let token = try fixture.start()
    try fixture.push(.update, to: token, at: 10)
    fixture.deliveries.now += 1000
    let (new, events) = try fixture.registry.rotateActivityToken(token.uppercased(), now: fixture.deliveries.now) {
      "bb01"
    }
    #expect(new == TokenDescription(kind: .liveactivity, token: "bb01"))
    guard case .device(let event)? = events.first else { return #expect(Bool(false), "no event") }
    #expect(event.kind == .activityRotated && event.token == "bb01" && event.formerToken == token)
    #expect(try fixture.status(of: token) == .expired(since: Self.noon + 1000))
    #expect(fixture.registry.contents(of: "anna")?.shown.map(\.activity) == ["bb01"])
    #expect(fixture.registry.activities(on: "anna").map(\.startedAt) == [Self.noon])
    // What it shows is known by the new token.
    try fixture.push(.update, to: "bb01", at: 9)
    #expect(fixture.notShown[3]?.by == 2)
    try fixture.push(.update, to: "bb01", at: 11)
    #expect(fixture.deliveries.shown == [4])
    for (token, error) in [
      (token, DeviceError.activityEnded(token)), ("5a01", .notActivityToken("5a01")),
      ("aa01", .notActivityToken("aa01")),
      ("ffff", .unknownToken("ffff")),
    ] {
      #expect(throws: error) { try fixture.registry.rotateActivityToken(token, now: 0) { "bb02" } }
    }
  }

  @Test func appStartsAndEndsActivities() throws {
    let fixture = try Fixture()
    let (token, started) = try fixture.registry.startActivity(
      of: "com.acme.ride", nil, on: "anna", now: Self.noon
    ) { "bb01" }
    guard case .device(let start)? = started.first else { return #expect(Bool(false), "no event") }
    #expect(start.kind == .activityStarted && start.token == token.token && start.seq == nil)
    try fixture.push(.update, to: "bb01")
    #expect(fixture.deliveries.shown == [1])
    guard case .device(let end)? = try fixture.registry.expire("bb01", now: Self.noon + 1).first else {
      return #expect(Bool(false), "no event")
    }
    #expect(end.kind == .activityEnded && end.token == "bb01" && end.seq == nil)
    #expect(fixture.deliveries.shown.isEmpty)
  }

  /// A push that waited for the device is checked again when it arrives.
  @Test func storedStart() throws {
    let fixture = try Fixture(.offline)
    try fixture.push(.start, to: "5a01")
    #expect(fixture.tokens.isEmpty)
    fixture.deliveries.now += 8 * 3_600_000
    try fixture.deliveries.set(.online)
    #expect(fixture.tokens.count == 1)
    let late = try Fixture(.offline)
    try late.push(.start, to: "5a01")
    late.deliveries.now += 8 * 3_600_000 + 1
    try late.deliveries.set(.online)
    #expect(late.tokens.isEmpty && late.deliveries.shown.isEmpty)
    #expect(late.notShown[1]?.problem.text.contains("more than 8 hours ago") == true)
    #expect(late.deliveries.states(of: 1) == [.deliveredFromStorage], "APNs does not know it")
  }

  @Test func numberOfActivitiesIsLimited() throws {
    let fixture = try Fixture()
    for _ in 1..<DeviceRegistry.maxPerDevice { _ = try fixture.start() }
    try fixture.push(.start, to: "5a01")
    #expect(fixture.notShown.map(\.value.problem) == [.tooManyActivities])
    // Activities that have ended are forgotten, the oldest first.
    let tokens = fixture.tokens
    for token in tokens { try fixture.push(.end, to: token) }
    for _ in 0..<5 { try fixture.push(.end, to: try fixture.start()) }
    #expect(fixture.registry.token(tokens[0]) == nil)
    #expect(fixture.registry.token(try #require(tokens.last))?.token.state == .expired)
    // The tokens of both apps, and those that have expired.
    #expect(fixture.registry.counts.tokens == 2 + DeviceRegistry.maxPerDevice + 1)
  }

  /// What is removed does not come back with a token that uses its memory.
  @Test func removedTokens() throws {
    let fixture = try Fixture()
    let token = try fixture.start()
    #expect(fixture.registry.remove(token))
    #expect(fixture.deliveries.shown.isEmpty && fixture.tokens.isEmpty)
    _ = try fixture.registry.startActivity(of: "com.acme.ride", nil, on: "anna", now: Self.noon) { token }
    #expect(fixture.registry.activities(on: "anna").map(\.attributesType) == [nil])
  }

  /// A push that waits for the device follows its token to another one, and not to an activity that gets its memory.
  @Test func tokensOfStoredPushes() throws {
    let fixture = try Fixture()
    let token = try fixture.start()
    try fixture.deliveries.set(.offline)
    try fixture.push(.update, to: token, at: 1)
    _ = try fixture.registry.rotateActivityToken(token, now: fixture.deliveries.now) { "bb01" }
    try fixture.deliveries.set(.online)
    #expect(fixture.notShown.isEmpty && fixture.deliveries.shown == [2])
    try fixture.deliveries.set(.offline)
    try fixture.push(.end, to: "bb01", at: 2)
    #expect(fixture.registry.remove("bb01"))
    _ = try fixture.registry.startActivity(of: "com.acme.ride", nil, on: "anna", now: Self.noon) { "bb02" }
    try fixture.deliveries.set(.online)
    #expect(fixture.notShown[3]?.problem == .activityEnded(event: "end") && fixture.tokens == ["bb02"])
  }

  /// The token of an activity that has ended keeps the time of its end.
  @Test func endsOnlyOnce() throws {
    let fixture = try Fixture()
    let token = try fixture.start()
    _ = try fixture.registry.expire(token, now: Self.noon + 1)
    #expect(try fixture.registry.expire(token, now: Self.noon + 2).isEmpty)
    #expect(try fixture.status(of: token) == .expired(since: Self.noon + 1))
  }

  /// A token that is set to a state does not end by itself any more.
  @Test func stateThatIsSetReplacesTheDismissal() throws {
    let fixture = try Fixture()
    let token = try fixture.start()
    try fixture.push(.end, to: token, dismissal: 3600)
    for state in [SingleToken.State.expired, .online] {
      try fixture.registry.set(SingleToken(token: token, state: state, since: Self.noon))
    }
    fixture.deliveries.now += 2 * 3_600_000
    #expect(try fixture.status(of: token) == .active)
  }

  /// An activity that has ended disappears at its time also if the server is another one by then.
  @Test func dismissalIsRestored() throws {
    let fixture = try Fixture()
    let token = try fixture.start()
    fixture.deliveries.now += 60_000
    _ = try fixture.registry.rotateActivityToken(token, now: fixture.deliveries.now) { "bb01" }
    try fixture.push(.end, to: "bb01", at: 60, dismissal: 3600)
    let stored = try #require(fixture.registry.stored(device: "anna"))
    let json = try JSONEncoder().encode(stored)
    let other = DeviceRegistry()
    other.restore(devices: ["anna": try JSONDecoder().decode(StoredDevice.self, from: json)], tokens: [:])
    let (one, copy) = (fixture.registry.activities(on: "anna"), other.activities(on: "anna"))
    #expect(copy.map(\.startedAt) == [Self.noon] && copy.map(\.dismissedAt) == one.map(\.dismissedAt))
    _ = other.advance(to: Self.noon + 60_000 + 3_600_000)
    #expect(other.activities(on: "anna").isEmpty)
  }

  /// What the device ignored because of its budget is not carried out when a server continues.
  @Test func budgetIsRestored() throws {
    let fixture = try Fixture()
    let token = try fixture.start()
    fixture.deliveries.settings.liveActivityBudget = DeviceRate(count: 1, per: .seconds(3600))
    let match = try #require(token.withBytes { fixture.registry.match($0, now: Self.noon) })
    for (seq, event) in [ActivityContent.Event.update, .end].enumerated() {
      let push = AcceptedPush(
        target: match.reference, expiration: nil, priority: 10, pushType: .liveactivity,
        activity: Self.content(event, at: Self.noon))
      fixture.registry.restore(
        push, seq: 10 + seq, .delivered, receivedAt: Self.noon, settings: fixture.deliveries.settings)
    }
    #expect(fixture.tokens == [token])
  }

  /// Live Activity pushes are no changes of what is registered.
  @Test func versionOfTheRegistry() throws {
    let fixture = try Fixture()
    let token = try fixture.start()
    let version = fixture.registry.version
    try fixture.push(.update, to: token, at: 1)
    #expect(fixture.registry.version == version)
    // Devices that are loaded leave them as they are.
    try fixture.registry.load(now: 0) { try $0.add(DeviceDescription(id: "bert")) }
    #expect(fixture.registry.version != version)
    try fixture.push(.update, to: token, at: 0)
    #expect(fixture.notShown[3]?.by == 2)
  }

  /// Of a token that was registered alone the order and the end are known, but its state is as it was set.
  @Test func singleToken() throws {
    let fixture = try Fixture()
    try fixture.registry.set(SingleToken(token: "cc01", since: 0))
    try fixture.push(.start, to: "cc01")
    try fixture.push(.update, to: "cc01", at: 2)
    try fixture.push(.update, to: "cc01", at: 1)
    try fixture.push(.end, to: "cc01", at: 3)
    try fixture.push(.update, to: "cc01", at: 4)
    #expect(fixture.notShown.keys.sorted() == [3, 5])
    #expect(fixture.notShown[5]?.problem == .activityEnded(event: "update"))
    #expect(try fixture.status(of: "cc01") == .active)
  }

  @Test func namesOfKinds() {
    for type in PushType.allCases { #expect(TokenKind(text: type.text)?.pushType == type) }
    #expect(TokenKind(text: "liveactivity_start") == .liveactivityStart)
    #expect(TokenKind.liveactivityStart.pushType == .liveactivity)
    #expect(TokenKind(text: "liveactivityStart") == nil)
  }
}
