import APNSMockRules
import APNSMockDevices
import APNSMockTestSupport
import Testing

/// Lookup and registration of device tokens.
struct DeviceRegistryTests {
  @Test func singleTokens() throws {
    let registry = DeviceRegistry()
    #expect(registry.isEmpty)
    #expect(try registry.set(SingleToken(token: "AB", since: 1)))
    #expect(try registry.set(SingleToken(token: "cd", since: 2)))
    #expect(try !registry.set(SingleToken(token: "ab", state: .expired, since: 3)))
    #expect(registry.counts == (0, 2))
    #expect(registry.token("Ab")?.token.state == .expired)
    #expect(registry.token("ef") == nil)
    #expect(registry.remove("AB"))
    #expect(!registry.remove("AB"))
    #expect(registry.tokens(limit: 10).items.map(\.token.token) == ["cd"])
    registry.reset()
    #expect(registry.isEmpty)
  }

  /// Its broadcasts expire, too.
  @Test func deviceWithoutTokens() throws {
    let registry = DeviceRegistry()
    try registry.load(now: 0) { try $0.add(DeviceDescription(id: "anna")) }
    #expect(registry.counts == (1, 0))
    #expect(!registry.isEmpty)
  }

  /// Two device tokens with the same hash, found by a search of 2³² steps, are two tokens.
  @Test func tokensWithOneHash() throws {
    let (one, other) = ("438152124b7ae0f9", "7e3fd7e01aac8ede")
    try #require(one.withBytes { PushKey(deviceToken: $0) } == other.withBytes { PushKey(deviceToken: $0) })
    let registry = DeviceRegistry()
    try registry.set(SingleToken(token: one, since: 1))
    #expect(registry.token(other) == nil)
    try registry.set(SingleToken(token: other, since: 2))
    try registry.set(SingleToken(token: one, since: 3))
    #expect(registry.token(one.uppercased())?.token.since == 3)
    #expect(registry.token(other.uppercased())?.token.since == 2)
    #expect(registry.remove(one))
    #expect(registry.token(one) == nil)
    #expect(registry.token(other)?.token.since == 2)
    #expect(registry.remove(other))
    #expect(registry.isEmpty)
  }

  /// Many registrations and removals, compared with a dictionary after each hundred.
  @Test func randomChanges() throws {
    var random = SplitMix(state: 7)
    var expected: [String: Int64] = [:]
    let registry = DeviceRegistry()
    for step in 0..<20_000 {
      let number = random.next() % 500
      let token = String(number, radix: 16).padded(to: number % 2 == 0 ? 4 : 6)
      if random.next() % 3 == 0 {
        #expect(registry.remove(token) == (expected.removeValue(forKey: token) != nil))
      } else {
        try registry.set(SingleToken(token: token, since: Int64(step)))
        expected[token] = Int64(step)
      }
      guard step % 100 == 0 else { continue }
      let found = registry.tokens(limit: .max).items.map { ($0.token.token, $0.token.since) }
      #expect(Dictionary(found) { one, _ in one } == expected)
      #expect(found.count == expected.count)
    }
  }

  @Test func loadingIsAllOrNothing() throws {
    let registry = DeviceRegistry(maxDevices: 3)
    try registry.load(now: 0) { loader in
      try loader.add(Self.device("anna", token: "aa01"))
    }
    #expect(throws: DeviceError.tokenExists("AA01", owner: "anna")) {
      try registry.load(now: 0) { loader in
        try loader.add(Self.device("bert", token: "aa02"))
        try loader.add(Self.device("carl", token: "AA01"))
      }
    }
    #expect(throws: DeviceError.deviceExists("bert")) {
      try registry.load(now: 0) { loader in
        try loader.add(Self.device("bert", token: "aa02"))
        try loader.add(Self.device("bert", token: "aa03"))
      }
    }
    #expect(throws: DeviceError.limitReached(3)) {
      try registry.load(now: 0) { loader in
        for index in 0..<3 { try loader.add(Self.device("d-\(index)", token: "bb0\(index)")) }
      }
    }
    #expect(registry.devices(limit: 10).items == [Self.device("anna", token: "aa01")])
    // A device that was there before is replaced.
    try registry.load(now: 0) { try $0.add(Self.device("anna", token: "aa04")) }
    #expect(registry.devices(limit: 10).items == [Self.device("anna", token: "aa04")])
    #expect(registry.token("aa01") == nil)
  }

  @Test func reinstallingGivesNewTokens() throws {
    let registry = DeviceRegistry()
    try registry.load(now: 0) { try $0.add(Self.device("anna", token: "aa01")) }
    var tokens = ["aa02", "aa03"].makeIterator()
    let new = try registry.install("com.acme.app", nil, on: "anna", replaces: true, now: 5) { tokens.next() ?? "" }
    #expect(new.tokens == [TokenDescription(kind: .alert, token: "aa02")])
    #expect(registry.device("anna")?.apps.map(\.tokens) == [new.tokens])
    // The former token is still known: pushes to it are discarded, then rejected.
    let former = try #require("aa01".withBytes { registry.match($0, now: 10) })
    #expect(former.isRemovalUndetected)
    #expect(former.token.status == .active)
    registry.markRemovalDetected(former.reference, now: 10)
    #expect("aa01".withBytes { registry.match($0, now: 10) }?.token.status == .unregistered(since: 10))
    #expect("aa01".withBytes { registry.match($0, now: 10, unregisteredDelay: 5) }?.token.status == .active)
    #expect("aa02".withBytes { registry.match($0, now: 10) }?.token.status == .active)
    #expect(throws: DeviceError.self) {
      try registry.install("com.acme.app", nil, on: "anna", replaces: false, now: 5) { "aa05" }
    }
  }

  @Test func appsOfBothEnvironmentsNeedTheEnvironment() throws {
    let registry = DeviceRegistry()
    for (environment, token) in [(PushEnvironment.sandbox, "aa01"), (.production, "aa02")] {
      _ = try registry.install("com.acme.app", environment, on: "anna", replaces: false, now: 0) { token }
    }
    #expect(throws: DeviceError.ambiguousEnvironment("com.acme.app")) {
      try registry.setState(of: "com.acme.app", nil, on: "anna", .disabled)
    }
    try registry.setState(of: "com.acme.app", .production, on: "anna", .disabled)
    #expect(registry.device("anna")?.apps.map(\.state) == [.enabled, .disabled])
  }

  static func device(_ id: String, token: String, _ state: DeviceState = .online) -> DeviceDescription {
    DeviceDescription(
      id: id, state: state,
      apps: [
        InstallationDescription(
          bundleID: "com.acme.app", environment: .sandbox, tokens: [TokenDescription(kind: .alert, token: token)])
      ])
  }
}

/// A small generator of reproducible random numbers.
private struct SplitMix {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
    return value ^ value >> 31
  }
}

extension String {
  fileprivate func padded(to count: Int) -> String { String(repeating: "0", count: max(0, count - utf8.count)) + self }
}

extension String {
  /// Calls `body` with the UTF-8 of the text.
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    Array(utf8).withUnsafeBytes(body)
  }
}
