import Foundation
import MockAPNS
import MockAPNSTesting
import Provider
import Synchronization
import Testing

/// Tests of `Provider` under five fault profiles. Each test has a server of its own; a finding fails it.
@Suite(.apns(failOnFindings: true)) struct ProviderTests {
  // Always the same device tokens, so that a seed always gives the same faults.
  private static let tokens = (1...40).map { String(format: "%064x", $0) }

  private let server: MockServer
  private let clock: TestClock

  init() throws {
    server = try MockServer.current
    clock = TestClock(server)
  }

  @Test(.apns(profile: "healthy")) func everyPushIsAcceptedOnce() async throws {
    let deliveries = try await withProvider { try await send(with: $0) }
    #expect(deliveries.allSatisfy { $0.status == 200 && $0.attempts == 1 })
    try await server.verify(
      """
      {"expect": [{"match": {"payload": {"/aps/alert/title": "Welcome"}}, "count": {"exactly": 40},
                   "outcome": "accepted"}], "no_others": true}
      """)
    #expect(try providerTokens().count == 1)
  }

  @Test(.apns(profile: "healthy")) func providerTokenIsRenewedBeforeItExpires() async throws {
    try await withProvider { provider in
      try await send(with: provider, to: Self.tokens[..<20])
      clock.advance(by: 55 * 60)
      try await send(with: provider, to: Self.tokens[20...])
    }
    #expect(try server.pushes(matching: "status:200").count == 40)
    #expect(try providerTokens().count == 2)
  }

  @Test(.apns(profile: "flaky-503?rate=0.3", seed: 7)) func unavailableServiceIsRetriedWithBackoff() async throws {
    let deliveries = try await withProvider { try await send(with: $0) }
    #expect(deliveries.allSatisfy { $0.status == 200 })
    try await server.verify(
      """
      {"expect": [{"name": "retry policy", "match": {"rule": "flaky"},
                   "retries": {"min": 1, "max": 4, "min_first_delay": "150ms", "growing": true, "finally": "accepted"}}],
       "nothing_lost": true}
      """)
  }

  @Test(.apns(profile: "unregistered-410?rate=0.3&gone_for=10s", seed: 7))
  func unregisteredDevicesAreRemovedUnlessRegisteredAgain() async throws {
    try server.unregister(device: Self.tokens[0])
    try await withProvider(devices: [Self.tokens[0]: Date(timeIntervalSinceNow: 3600)]) { provider in
      let deliveries = try await send(with: provider)
      let gone = Set(deliveries.filter { $0.reason == "Unregistered" }.map(\.push.deviceToken))
      #expect(gone.contains(Self.tokens[0]) && gone.count > 1)
      #expect(await Set(provider.devices.keys) == Set(Self.tokens).subtracting(gone).union([Self.tokens[0]]))
    }
    try await server.verify(
      #"{"expect": [{"match": {"status": 410}, "retries": {"max": 0}}], "nothing_lost": true}"#)
  }

  @Test func badDeviceTokenIsRemoved() async throws {
    try server.addRule(
      #"{"when": {"device_token": "\#(Self.tokens[0])"}, "do": {"respond": {"reason": "BadDeviceToken"}}}"#)
    try await withProvider { provider in
      let deliveries = try await send(with: provider)
      #expect(deliveries.filter { $0.reason == "BadDeviceToken" }.map(\.attempts) == [1])
      #expect(await Set(provider.devices.keys) == Set(Self.tokens.dropFirst()))
    }
  }

  @Test(.apns(profile: "expired-jwt-403?max_age=30s")) func expiredProviderTokenIsRenewedOnce() async throws {
    try await withProvider { provider in
      try await send(with: provider, to: Self.tokens[..<20])
      clock.advance(by: 31)
      #expect(try await send(with: provider, to: Self.tokens[20...20]).map(\.attempts) == [2])
      #expect(try await send(with: provider, to: Self.tokens[21...]).allSatisfy { $0.attempts == 1 })
    }
    #expect(try server.pushes(matching: "reason:ExpiredProviderToken").count == 1)
    #expect(try providerTokens().count == 2)
    try await server.verify(#"{"nothing_lost": true}"#)
  }

  @Test(.apns(profile: "goaway-storm?streams=7")) func pushesSurviveGoAway() async throws {
    let deliveries = try await withProvider { try await send(with: $0) }
    #expect(deliveries.allSatisfy { $0.status == 200 })
    #expect(try server.pushes().contains { $0.faultRule == "goaway" })
    try await server.verify(#"{"nothing_lost": true}"#)
  }

  /// Runs `body` with a provider whose devices were registered a minute ago, except for those in `devices`.
  private func withProvider<Result>(
    devices: [String: Date] = [:], _ body: (Provider) async throws -> Result
  ) async throws -> Result {
    let server = server.settings
    var settings = Provider.Settings(
      url: server.url, key: try String(contentsOfFile: server.keyPath, encoding: .utf8), keyID: server.keyID,
      teamID: server.teamID, caPath: server.caPath)
    settings.firstDelay = .milliseconds(150)
    settings.now = { [clock] in clock.now }
    let aMinuteAgo = Date(timeIntervalSinceNow: -60)
    let registered = Dictionary(uniqueKeysWithValues: Self.tokens.map { ($0, devices[$0] ?? aMinuteAgo) })
    let provider = try Provider(settings, devices: registered)
    do {
      let result = try await body(provider)
      try await provider.close()
      return result
    } catch {
      try await provider.close()
      throw error
    }
  }

  /// Sends a push to each device.
  @discardableResult
  private func send(with provider: Provider, to tokens: ArraySlice<String> = Self.tokens[...]) async throws
    -> [Delivery]
  {
    for token in tokens {
      await provider.enqueue(
        Push(
          deviceToken: token, payload: #"{"aps": {"alert": {"title": "Welcome"}}}"#, topic: server.settings.topic))
    }
    return try await provider.sendQueue()
  }

  /// The provider tokens that were used.
  private func providerTokens() throws -> Set<String> {
    Set(try server.pushes().flatMap(\.headers).filter { $0.name == "authorization" }.map(\.value))
  }
}

/// The clock of the provider, which moves together with that of the server.
private final class TestClock: Sendable {
  private let server: MockServer
  private let offset = Mutex<TimeInterval>(0)

  init(_ server: MockServer) { self.server = server }

  var now: Date { Date(timeIntervalSinceNow: offset.withLock { $0 }) }

  func advance(by seconds: Int) {
    server.advanceClock(by: .seconds(seconds))
    offset.withLock { $0 += TimeInterval(seconds) }
  }
}
