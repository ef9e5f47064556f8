import APNSMockRules
import APNSMockClientCommands
import Testing

@testable import APNSMockCommand
import APNSMockNotation

/// Values of the rules' settings, as written in the configuration file.
@Suite struct APNSSettingTests {
  typealias Expectation = @Sendable (APNSSettings) -> Bool

  private static let accepted: [(APNSSetting, String, Expectation)] = [
    (.tokenMaxAge, "10m", { $0.tokenMaxAge == .seconds(600) }),
    (.tokenFuture, "0s", { $0.tokenFuture == .zero }),
    (.expiredTokenCloses, "off", { $0.expiredTokenCloses == false }),
    (.expiredTokenCloses, "on", { $0.expiredTokenCloses == true }),
    (.tokenUpdateInterval, "1ms", { $0.tokenUpdateInterval == .milliseconds(1) }),
    (.freeTokenUpdates, "0", { $0.freeTokenUpdates == 0 }),
    (.tokenUpdateScope, "team", { $0.tokenUpdateScope == .team }),
    (.idleTimeout, "2s", { $0.idleTimeout == .seconds(2) }),
    (.firstStreams, "100", { $0.firstStreams == 100 }),
    (.maxStreams, "5", { $0.maxStreams == 5 }),
    (.throttleOn4xx, "on", { $0.throttleOn4xx }),
    (.throttleOn4xx, "true", { $0.throttleOn4xx }),
    (.throttleOn4xx, "Yes", { $0.throttleOn4xx }),
    (.environmentKeyReason, "BadEnvironmentKeyIdInToken", { $0.environmentKeyReason == .badEnvironmentKeyIdInToken }),
    (.errorContentType, "on", { $0.errorContentType }),
    (.deviceRate, "5/1s", { $0.deviceRate == DeviceRate(count: 5, per: .seconds(1)) }),
    (.errorsBeforeGoaway, "3", { $0.errorsBeforeGoaway == 3 }),
    (.unregisteredAfter, "1h", { $0.unregisteredAfter == .seconds(3600) }),
    (.unregisteredDelay, "1h", { $0.unregisteredDelay == .seconds(3600) }),
    (.onlineQueue, "1", { $0.onlineQueue }),
    (.acknowledgeAfter, "20ms", { $0.acknowledgeAfter == .milliseconds(20) }),
    (.backgroundBudget, "3/1h", { $0.backgroundBudget == DeviceRate(count: 3, per: .seconds(3600)) }),
    (.liveActivityBudget, "20/1h", { $0.liveActivityBudget == DeviceRate(count: 20, per: .seconds(3600)) }),
    (.pushToStartBudget, "10/1m", { $0.pushToStartBudget == DeviceRate(count: 10, per: .seconds(60)) }),
    (.abandonedAfter, "0s", { $0.abandonedAfter == .zero }),
  ]

  @Test(arguments: accepted)
  func validValueIsSet(_ setting: APNSSetting, _ value: String, _ expectation: Expectation) throws {
    var settings = APNSSettings()
    #expect(!expectation(settings), "the default must differ, or the row shows nothing")
    try settings.set(setting, to: value)
    #expect(expectation(settings))
  }

  @Test func everySettingIsInTheTable() {
    #expect(Set(Self.accepted.map(\.0)) == Set(APNSSetting.allCases))
  }

  @Test(
    arguments: [APNSSetting.deviceRate, .errorsBeforeGoaway, .throttleOn4xx, .errorContentType],
    ["off", "false", "no", "OFF"])
  func everyYAMLSpellingOfOffIsAccepted(_ setting: APNSSetting, _ word: String) throws {
    var settings = APNSSettings()
    settings.deviceRate = DeviceRate(count: 1, per: .seconds(1))
    settings.errorsBeforeGoaway = 1
    settings.throttleOn4xx = true
    settings.errorContentType = true
    try settings.set(setting, to: word)
    let isOff: [APNSSetting: Bool] = [
      .deviceRate: settings.deviceRate == nil, .errorsBeforeGoaway: settings.errorsBeforeGoaway == nil,
      .throttleOn4xx: !settings.throttleOn4xx, .errorContentType: !settings.errorContentType,
    ]
    #expect(isOff.filter(\.value).map(\.key) == [setting])
  }

  private static let refused: [(APNSSetting, String, allowed: String)] = [
    (.tokenMaxAge, "0s", "longer than zero"), (.tokenMaxAge, "3600", "a duration"), (.tokenFuture, "off", "a duration"),
    (.expiredTokenCloses, "later", "on or off"),
    (.tokenUpdateInterval, "-1s", "a duration"), (.freeTokenUpdates, "-1", "from 0"),
    (.idleTimeout, "0s", "longer than zero"), (.firstStreams, "0", "from 1"), (.maxStreams, "2147483648", "from 1 to"),
    (.throttleOn4xx, "maybe", "on or off"), (.errorContentType, "", "on or off"),
    (.environmentKeyReason, "BadTopic", "BadEnvironmentKeyInToken or BadEnvironmentKeyIdInToken"),
    (.deviceRate, "5", "5/1s"), (.deviceRate, "0/1s", "5/1s"), (.deviceRate, "5/0s", "5/1s"),
    (.deviceRate, "5/1s/2", "off"),
    (.errorsBeforeGoaway, "0", "from 1, or off"), (.unregisteredAfter, "soon", "a duration"),
  ]

  @Test(arguments: refused)
  func invalidValueNamesAllowedValues(_ setting: APNSSetting, _ value: String, allowed: String) {
    var settings = APNSSettings()
    let error = #expect(throws: InvalidSettingValue.self) { try settings.set(setting, to: value) }
    #expect(error?.allowed.contains(allowed) == true, "\(String(describing: error))")
  }
}
