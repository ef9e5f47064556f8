import APNSMockRules
import APNSMockDevices
import APNSMockHTTPMessage
import APNSMockInbox
import MockAPNS
import APNSMockNotation
import APNSMockTestSupport
import Testing

/// Pushes over real sockets, through the whole server.
@Suite struct EndToEndPushTests {
  @Test func acceptedPush() async throws {
    try await TestServer.run { test in
      let answer = try #require(try await test.send(test.push(token: try test.providerToken())))
      #expect(answer.status == 200)
      #expect(answer.body.isEmpty)
      var names: [String] = []
      answer.headers.forEachField { name, _ in names.append(answer.headers.string(name)) }
      #expect(names == [":status", "apns-id", "apns-unique-id"])
      let id = try #require(answer.headers["apns-id"])
      #expect(id.wholeMatch(of: /[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}/) != nil)
      let uniqueID = try #require(answer.headers["apns-unique-id"])
      #expect(uniqueID.wholeMatch(of: /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/) != nil)
      let record = try #require(try test.state.inbox.record(seq: 1))
      #expect(record.accepted)
      #expect(record.outcome == .accepted)
    }
  }

  @Test func productionHasNoUniqueID() async throws {
    try await TestServer.run({ $0.environment = .production }) { test in
      let answer = try #require(try await test.send(test.push(token: try test.providerToken())))
      #expect(answer.status == 200)
      #expect(answer.headers["apns-unique-id"] == nil)
    }
  }

  @Test func rejectionIsCompactJSONAndRecorded() async throws {
    try await TestServer.run { test in
      let push = test.push(token: try test.providerToken(), deviceToken: "not-hex")
      let answer = try #require(try await test.send(push))
      #expect(answer.status == 400)
      #expect(answer.text == #"{"reason":"BadDeviceToken"}"#)
      #expect(answer.headers.count == 2, ":status and apns-id, nothing else")
      let record = try #require(try test.state.inbox.record(seq: 1))
      #expect(record.outcome == .rejected)
      #expect(record.sentResponse.reason == .badDeviceToken)
    }
  }

  @Test(arguments: [
    "9d3220fe-444b-633e-d1f1-5d0dcb4f537a", "9D3220FE-444B-633E-D1F1-5D0DCB4F537A",
    "9d3220FE-444b-633e-D1f1-5d0dcb4f537A",
  ])
  func clientIDIsReturnedByteForByte(id: String) async throws {
    try await TestServer.run { test in
      let token = try test.providerToken()
      #expect(try await test.send(test.push(token: token, ["apns-id": id]))?.headers["apns-id"] == id)
      let rejected = try await test.send(test.push(token: token, deviceToken: "zz", ["apns-id": id]))
      #expect(rejected?.status == 400)
      #expect(rejected?.headers["apns-id"] == id)
    }
  }

  @Test func invalidIDIsReplaced() async throws {
    try await TestServer.run { test in
      let answer = try #require(
        try await test.send(test.push(token: try test.providerToken(), ["apns-id": "no-uuid"])))
      #expect(answer.text == #"{"reason":"BadMessageId"}"#)
      #expect(answer.headers["apns-id"]?.count == 36)
    }
  }

  @Test func certificateReplacesToken() async throws {
    try await TestServer.run { test in
      let answer = try #require(try await test.send(test.push(token: nil), certificate: true))
      #expect(answer.status == 200)
      let noTopic = try #require(try await test.send(test.push(token: nil, ["apns-topic": ""]), certificate: true))
      #expect(noTopic.status == 400)
      let other = try #require(
        try await test.send(test.push(token: nil, ["apns-topic": "com.other"]), certificate: true))
      #expect(other.text == #"{"reason":"TopicDisallowed"}"#)
    }
  }

  @Test func pushWithoutCredentialsIsRejected() async throws {
    try await TestServer.run { test in
      let answer = try #require(try await test.send(test.push(token: nil)))
      #expect(answer.status == 403)
      #expect(answer.text == #"{"reason":"MissingProviderToken"}"#)
    }
  }

  @Test func unregisteredDeviceIs410WithATimeInMilliseconds() async throws {
    try await TestServer.run { test in
      let now = test.state.clock.now
      try test.state.devices.set(SingleToken(token: TestServer.deviceToken, state: .unregistered, since: now - 5000))
      let answer = try #require(try await test.send(test.push(token: try test.providerToken())))
      #expect(answer.status == 410)
      #expect(answer.text == #"{"reason":"Unregistered","timestamp":\#(now - 5000)}"#)
    }
  }

  @Test func tokensExpireByTheServerClock() async throws {
    try await TestServer.run { test in
      test.state.clock.freeze(at: 1_800_000_000_000)
      let token = try test.providerToken()
      #expect(try await test.send(test.push(token: token))?.status == 200)
      test.state.clock.advance(by: 3_600_000)
      #expect(try await test.send(test.push(token: token))?.status == 200, "exactly an hour is in time")
      test.state.clock.advance(by: 1000)
      #expect(try await test.send(test.push(token: token))?.text == #"{"reason":"ExpiredProviderToken"}"#)
    }
  }

  @Test func tooManyTokenUpdatesBlockTheConnection() async throws {
    try await TestServer.run { test in
      let pushes = try [30, 20, 10, 30].map { test.push(token: try test.providerToken(age: $0)) }
      let outcomes = try await test.provider().send(pushes)
      let texts = outcomes.map { outcome -> String in
        if case .response(let response) = outcome { "\(response.status) \(response.text)" } else { "none" }
      }
      let blocked = #"429 {"reason":"TooManyProviderTokenUpdates"}"#
      #expect(texts == ["200 ", "200 ", blocked, blocked])
    }
  }

  @Test func manyPushesOnOneConnectionAreAllAccepted() async throws {
    try await TestServer.run { test in
      let token = try test.providerToken()
      let outcomes = try await test.provider().send((0..<500).map { _ in test.push(token: token) })
      let accepted = outcomes.count { if case .response(let response) = $0 { response.status == 200 } else { false } }
      #expect(accepted == 500)
      let ids = Set(
        outcomes.compactMap { outcome -> String? in
          if case .response(let response) = outcome { response.headers["apns-id"] } else { nil }
        })
      #expect(ids.count == 500)
      #expect(try test.state.inbox.record(seq: 500) != nil)
    }
  }

  @Test func errorsBeforeGoAwaySettingEndsTheConnection() async throws {
    try await TestServer.run({ $0.settings.errorsBeforeGoaway = 2 }) { test in
      let token = try test.providerToken()
      // More pushes than a client opens before it has read the first SETTINGS: those sent later are refused by the
      // GOAWAY.
      let outcomes = try await test.provider().send((0..<300).map { _ in test.push(token: token, deviceToken: "zz") })
      #expect(outcomes.first.map { if case .response = $0 { true } else { false } } == true)
      #expect(outcomes.contains { if case .response = $0 { false } else { true } })
    }
  }

  @Test func deviceRateIsLimited() async throws {
    try await TestServer.run({ $0.settings.deviceRate = DeviceRate(count: 2, per: .seconds(3600)) }) { test in
      let token = try test.providerToken()
      var reasons: [String] = []
      for _ in 0..<3 { reasons.append(try await test.send(test.push(token: token))?.text ?? "none") }
      #expect(reasons == ["", "", #"{"reason":"TooManyRequests"}"#])
      let other = test.push(token: token, deviceToken: String(repeating: "cd", count: 32))
      #expect(try await test.send(other)?.status == 200)
    }
  }

  /// Fixtures that are loaded one after the other cannot add apps without limit.
  @Test func knownAppsAreLimited() async throws {
    func document(_ numbers: Range<Int>) -> FixtureDocument {
      let apps = numbers.map { #"{"bundle_id":"com.example.app\#($0)"}"# }.joined(separator: ",")
      return FixtureDocument(name: "apps.json", text: Array(#"{"apps":[\#(apps)]}"#.utf8))
    }
    try await TestServer.run { test in
      let limit = FixtureReader.appLimit
      _ = try test.state.load([document(0..<limit)])
      _ = try test.state.load([document(0..<2)])
      let failure = #expect(throws: FileFailure.self) { try test.state.load([document(limit..<limit + 1)]) }
      #expect(failure?.problems.first?.message.contains("more than \(limit) apps") == true)
      #expect(test.state.apps.load().count == limit)
    }
  }

  @Test func secondServerUsesTheSameFolder() async throws {
    try await TestServer.run { test in
      var configuration = test.state.configuration
      configuration.apns = [MockServer.Endpoint(host: "127.0.0.1", port: 0)]
      let second = try await MockServer.start(configuration)
      #expect(second.addresses[0].port != test.server.addresses[0].port)
      await second.stop()
    }
  }

  /// Addresses that no machine has: in TEST-NET-1 (RFC 5737), and of a name that never exists (RFC 6761).
  @Test(arguments: [
    ("192.0.2.1", "this machine has no such address"), ("nowhere.invalid", "the host nowhere.invalid is unknown"),
  ])
  func unavailableAddressIsReported(host: String, reason: String) async throws {
    try await TestServer.run { test in
      var configuration = test.state.configuration
      configuration.apns = [MockServer.Endpoint(host: host, port: 2197)]
      let error = await #expect(throws: ListenError.self) {
        _ = try await MockServer.start(configuration) { _, _ in }
      }
      #expect(error?.isInUse == false)
      #expect(
        error?.description
          == "cannot listen on \(host):2197 (for providers): \(reason); choose another address with --apns HOST:PORT")
    }
  }

  @Test func portInUseIsReported() async throws {
    try await TestServer.run { test in
      var configuration = test.state.configuration
      configuration.apns = test.server.addresses
      let error = await #expect(throws: ListenError.self) {
        _ = try await MockServer.start(configuration) { _, _ in }
      }
      #expect(error?.isInUse == true)
      #expect(error?.description.contains(test.server.addresses[0].description) == true)
    }
  }
}
