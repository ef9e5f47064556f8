import APNSMockAdminAPI
import APNSMockRules
import ArgumentParser
import APNSMockClientCommands
import APNSMockFaultModel
import APNSMockFaults
import APNSMockInbox
import Logging
import MockAPNS
import Testing

@testable import APNSMockCommand
import APNSMockNotation

/// The values that each setting accepts, and their effects.
@Suite struct ServeSettingsTests {
  typealias Expectation = @Sendable (ServeSettings) -> Bool

  private static let accepted: [(Setting, [String], Expectation)] = [
    (.apns, ["127.0.0.1:0"], { $0.configuration.apns == [MockServer.Endpoint(host: "127.0.0.1", port: 0)] }),
    (
      .apns, ["[::1]:2197", "localhost:65535"],
      { $0.configuration.apns.map(\.description) == ["[::1]:2197", "localhost:65535"] }
    ),
    (
      .apns, ["[::1]:2197", "127.0.0.1:0+proxy-protocol"],
      {
        $0.configuration.apns.map(\.description) == ["[::1]:2197", "127.0.0.1:0"]
          && $0.configuration.apnsListeners.map(\.hasProxyProtocol) == [false, true]
      }
    ),
    (
      .apns, ["[::1]:1=sandbox", "localhost:2=production", "1.2.3.4:3=production+proxy-protocol", "1.2.3.4:4"],
      {
        let listeners = $0.configuration.apnsListeners
        return listeners.map(\.endpoint.description) == ["[::1]:1", "localhost:2", "1.2.3.4:3", "1.2.3.4:4"]
          && listeners.map(\.environment) == [.sandbox, .production, .production, nil]
          && listeners.map(\.hasProxyProtocol) == [false, false, true, false]
      }
    ),
    (
      .apnsPlain, ["127.0.0.1:1", "[::1]:2=production"],
      {
        $0.configuration.apnsPlain.map(\.description) == ["127.0.0.1:1", "[::1]:2"]
          && $0.configuration.apnsPlainListeners.map(\.environment) == [nil, .production]
      }
    ),
    (.proxy, ["127.0.0.1:0"], { $0.configuration.proxy == MockServer.Endpoint(host: "127.0.0.1", port: 0) }),
    (.proxy, ["127.0.0.1:0=production"], { $0.configuration.proxyListener?.environment == .production }),
    (
      .manage, ["127.0.0.1:2195", "127.0.0.1:2196=production"],
      {
        $0.configuration.manageListeners.map(\.endpoint.port) == [2195, 2196]
          && $0.configuration.manageListeners.map(\.environment) == [nil, .production]
      }
    ),
    (.admin, ["0.0.0.0:1"], { $0.configuration.admin == MockServer.Endpoint(host: "0.0.0.0", port: 1) }),
    (.certs, ["some/where"], { $0.configuration.certificates == "some/where" }),
    (.profiles, ["some/where"], { $0.configuration.profilesFolder == "some/where" }),
    (
      .profile, ["flaky-503?rate=0.5"],
      { $0.profile?.content == .reference(ProfileReference(.name("flaky-503"), parameters: ["rate": "0.5"])) }
    ),
    (.profile, ["./my.yml"], { $0.profile?.content == .reference(ProfileReference(.file("./my.yml"))) }),
    (.magicTokens, ["0"], { !$0.configuration.magicTokens }),
    (.magicTokens, ["off"], { !$0.configuration.magicTokens }),
    (.seed, ["18446744073709551615"], { $0.configuration.seed == .max }),
    (.environment, ["production"], { $0.configuration.environment == .production }),
    (.rules, ["lenient"], { $0.configuration.rules == .lenient }),
    (.topics, ["known"], { $0.configuration.requiresKnownTopics }),
    (.maxRecords, ["1"], { $0.configuration.maxRecords == 1 }),
    (.maxBytes, ["512KiB"], { $0.configuration.maxBytes == 524_288 }),
    (.maxBytes, ["64MiB"], { $0.configuration.maxBytes == 67_108_864 }),
    (.maxBytes, ["1GiB"], { $0.configuration.maxBytes == 1_073_741_824 }),
    (.maxBytes, ["4096"], { $0.configuration.maxBytes == 4096 }),
    (.record, ["sample=1/1000"], { $0.configuration.recording == .sample(of: 1000) }),
    (.record, ["counters"], { $0.configuration.recording == .counters }),
    (.store, ["sqlite:in.db"], { $0.store.place == .sqlite(path: "in.db", recent: nil) }),
    (.store, ["sqlite:/a b/in.db?memory_records=9"], { $0.store.place == .sqlite(path: "/a b/in.db", recent: 9) }),
    (.durable, ["answer"], { $0.store.options.durability == .answer }),
    (.storeFailure, ["drop"], { $0.store.options.failurePolicy == .drop }),
    (.retain, ["7d"], { $0.store.options.retention == 604_800_000 }),
    (.advertise, ["http://mock-1:8197"], { $0.store.advertisedURL == "http://mock-1:8197" }),
    (.advertise, ["https://mock/apns/"], { $0.store.advertisedURL == "https://mock/apns" }),
    (.fixtures, ["a.yaml", "b.json"], { $0.configuration.fixtures == ["a.yaml", "b.json"] }),
    (.devices, ["known"], { $0.configuration.requiresRegisteredDevices }),
    (.maxDevices, ["5"], { $0.configuration.maxDevices == 5 }),
    (.threads, ["3"], { $0.configuration.threads == 3 }),
    (.portFile, ["p.json"], { $0.portFile == "p.json" }),
    (.exportOnExit, ["all.ndjson"], { $0.exportOnExit == "all.ndjson" }),
    (.adminToken, ["s3cret"], { $0.configuration.adminToken == "s3cret" && !$0.generatesAdminToken }),
    (.adminToken, ["auto"], { $0.configuration.adminToken == nil && $0.generatesAdminToken }),
    (.san, ["a.test", "b.test"], { $0.configuration.certificateNames == ["a.test", "b.test"] }),
    (.allowHost, ["ci.internal"], { $0.configuration.allowedHosts == ["ci.internal"] }),
    (.clientCA, ["one.pem", "two.pem"], { $0.configuration.clientAuthorities == ["one.pem", "two.pem"] }),
    (.upstream, ["sandbox"], { $0.upstream.isChosen && $0.upstream.endpoint.host == "api.sandbox.push.apple.com" }),
    (.upstream, ["production"], { $0.upstream.endpoint == MockServer.Endpoint(host: "api.push.apple.com", port: 443) }),
    (.upstream, ["https://mock-1:2197"], { $0.upstream.endpoint == MockServer.Endpoint(host: "mock-1", port: 2197) }),
    (.upstream, ["https://mock-1/"], { $0.upstream.endpoint == MockServer.Endpoint(host: "mock-1", port: 443) }),
    (.upstream, ["https://[::1]"], { $0.upstream.endpoint == MockServer.Endpoint(host: "::1", port: 443) }),
    (.upstreamCA, ["one.pem", "two.pem"], { $0.upstream.authorities == ["one.pem", "two.pem"] }),
    (.upstreamCert, ["c.pem"], { $0.upstream.certificate == "c.pem" }),
    (.upstreamKey, ["k.pem"], { $0.upstream.key == "k.pem" }),
    (.upstreamConnections, ["5"], { $0.upstream.connections == 5 }),
    (.allowTopics, ["a.*", "b"], { $0.upstream.allowedTopics == ["a.*", "b"] }),
    (.allowTokens, ["ab*"], { $0.upstream.allowedTokens == ["ab*"] }),
    (.learn, ["off"], { !$0.upstream.learnsTokens }),
    (.shutdownTimeout, ["0s"], { $0.configuration.shutdownTimeout == .zero }),
    (.shutdownTimeout, ["250ms"], { $0.configuration.shutdownTimeout == .milliseconds(250) }),
    (.shutdownTimeout, ["2m"], { $0.configuration.shutdownTimeout == .seconds(120) }),
    (.shutdownTimeout, ["1h"], { $0.configuration.shutdownTimeout == .seconds(3600) }),
    (.logFormat, ["json"], { $0.logFormat == .json }),
    (.logLevel, ["debug"], { $0.logLevel == .debug }),
    (.webhook, ["http://mock-1:9000/x"], { $0.webhook.url != nil }),
    (.webhookCA, ["one.pem"], { $0.webhook.authorities == ["one.pem"] }),
    (.webhookFilter, ["status:4*"], { $0.webhook.filter == "status:4*" }),
    (.webhookPayload, ["on"], { $0.webhook.includesPayload }),
    (.webhookAnywhere, ["1"], { $0.webhook.allowsAnyAddress }),
  ]

  @Test(arguments: accepted)
  func validValueIsSet(_ setting: Setting, _ values: [String], _ expectation: Expectation) throws {
    var settings = ServeSettings()
    #expect(!expectation(settings), "the default must differ, or the row shows nothing")
    try settings.set(setting, to: values)
    #expect(expectation(settings))
  }

  @Test func everySettingIsInTheTable() {
    #expect(Set(Self.accepted.map(\.0)) == Set(Setting.allCases))
  }

  private static let refused: [(Setting, String, allowed: String)] = [
    (.apns, "2197", "HOST:PORT"), (.apns, "localhost", "HOST:PORT"), (.apns, ":2197", "HOST:PORT"),
    (.apns, "localhost:65536", "a port from 0 to 65535"), (.apns, "::1:2197", "HOST:PORT"),
    (.admin, "off", "HOST:PORT"),
    (.apns, "127.0.0.1:0+proxy", "HOST:PORT"), (.apnsPlain, "1:2+proxy-protocol", "HOST:PORT"),
    (.proxy, "1", "HOST:PORT"), (.manage, "2195", "HOST:PORT"), (.manage, "1:2+proxy-protocol", "HOST:PORT"),
    (.apns, "1:2=prod", "HOST:PORT=sandbox or HOST:PORT=production, then +proxy-protocol if needed"),
    (.apns, "1:2+proxy-protocol=sandbox", "then +proxy-protocol"), (.apns, "x=sandbox", "HOST:PORT=sandbox"),
    (.apns, "1:2=sandbox=sandbox", "HOST:PORT=sandbox"), (.apns, "1:2=", "HOST:PORT=sandbox"),
    (.proxy, "1:2=Production", "HOST:PORT=sandbox or HOST:PORT=production"),
    (.manage, "1:2=development", "HOST:PORT=sandbox or HOST:PORT=production"),
    (.certs, "", "a folder"), (.seed, "-1", "from 0 to 18446744073709551615"), (.seed, "x", "a whole number"),
    (.environment, "development", "sandbox or production"), (.rules, "Apple", "apple, strict or lenient"),
    (.topics, "all", "any or known"),
    (.maxRecords, "0", "from 1"), (.maxRecords, "many", "a whole number"), (.maxBytes, "12XB", "256MiB"),
    (.maxBytes, "0", "256MiB"), (.maxBytes, "-1", "256MiB"), (.threads, "0", "from 1 to 1024"),
    (.store, "sqlite", "sqlite:FILE"), (.store, "sqlite:", "sqlite:FILE"), (.store, "sqlit:in.db", "sqlite:FILE"),
    (.store, "sqlite://in.db", "sqlite:FILE"), (.store, "sqlite:in.db?cache=1", "memory_records=N"),
    (.store, "sqlite:in.db?memory_records=0", "memory_records=N"), (.durable, "always", "answer"),
    (.storeFailure, "ignore", "drop"), (.retain, "7", "5s, 2m, 1h or 7d"), (.retain, "0s", "longer than zero"),
    (.advertise, "mock-1:8197", "a URL such as http://mock-1:8197"), (.advertise, "http://", "a URL such as"),
    (.advertise, "http:///x", "a URL such as"), (.advertise, "http://mock?a=1", "a URL such as"),
    (.record, "sample", "sample=1/1000"), (.record, "sample=1/0", "counters"), (.record, "none", "all"),
    (.fixtures, "", "a fixture file"), (.devices, "all", "any or known"), (.maxDevices, "0", "from 1 to 10000000"),
    (.portFile, "", "the path"), (.adminToken, "", "auto"), (.adminToken, "two words", "without spaces"),
    (.san, "", "a host name"), (.allowHost, "", "a host name"), (.clientCA, "", "PEM"),
    (.upstream, "staging", "sandbox, production"), (.upstream, "http://localhost:1", "https://127.0.0.1:2197"),
    (.upstream, "https://", "sandbox"), (.upstream, "https://h:0", "sandbox"),
    (.upstream, "https://h:1/3/device", "sandbox"),
    (.upstream, "https://u:p@h", "sandbox"), (.upstreamCA, "", "PEM"), (.upstreamCert, "", "PEM"),
    (.upstreamKey, "", "PEM"), (.upstreamConnections, "17", "from 1 to 16"), (.allowTopics, "", "a topic"),
    (.allowTokens, "", "a device token"), (.learn, "2", "0 or 1"),
    (.shutdownTimeout, "5", "500ms, 5s, 2m, 1h or 7d"), (.shutdownTimeout, "-1s", "500ms"),
    (.logFormat, "xml", "text or json"),
    (.profiles, "", "a folder"), (.profile, "", "a profile such as"), (.profile, "Flaky 503", "a profile such as"),
    (.profile, "flaky-503?rate", "parameters with values"), (.magicTokens, "2", "0 or 1"),
    (.magicTokens, "", "0 or 1"),
    (.webhook, "ftp://mock", "http"), (.webhookCA, "", "PEM"),
    (.webhook, "mock:80", "a URL such as http://127.0.0.1:9000"),
    (.webhookPayload, "all", "off or on"), (.webhookAnywhere, "", "0 or 1"),
    (.logLevel, "loud", "trace, debug, info, notice, warning, error or critical"),
  ]

  @Test(arguments: refused)
  func invalidValueNamesAllowedValues(_ setting: Setting, _ value: String, allowed: String) {
    var settings = ServeSettings()
    let error = #expect(throws: InvalidSettingValue.self) { try settings.set(setting, to: [value]) }
    #expect(error?.allowed.contains(allowed) == true, "\(String(describing: error))")
  }

  @Test func scalarSettingAcceptsOneValue() {
    var settings = ServeSettings()
    #expect(throws: InvalidSettingValue(value: "1, 2", allowed: "one value")) {
      try settings.set(.seed, to: ["1", "2"])
    }
  }

  @Test func errorDoesNotContainTheToken() {
    var settings = ServeSettings()
    let error = #expect(throws: InvalidSettingValue.self) { try settings.set(.adminToken, to: ["my secret"]) }
    #expect(error?.value == "…")
  }

  @Test(arguments: Setting.allCases)
  func everySettingHasAFlagWithItsName(_ setting: Setting) throws {
    let switches: [Setting: String] = [
      .magicTokens: "off", .learn: "off", .webhookPayload: "on", .webhookAnywhere: "on",
    ]
    if let value = switches[setting] {
      #expect(try ServeFlags<ServeCommand>.parse([setting.flag]).given == [setting: [value]])
      return
    }
    let values = setting.isList ? ["one", "two"] : ["one"]
    let flags = try ServeFlags<ServeCommand>.parse(values.flatMap { [setting.flag, $0] })
    #expect(flags.given == [setting: values])
  }

  @Test(
    arguments: zip(
      [Setting.maxRecords, .clientCA, .apns],
      [
        ("--max-records", "APNS_MOCK_MAX_RECORDS"), ("--client-ca", "APNS_MOCK_CLIENT_CA"),
        ("--apns", "APNS_MOCK_APNS"),
      ]))
  func flagAndVariableAreDerivedFromTheName(_ setting: Setting, _ names: (flag: String, variable: String)) {
    #expect(setting.flag == names.flag)
    #expect(setting.variable == names.variable)
  }
}
