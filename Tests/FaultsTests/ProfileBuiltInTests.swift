import APNSMockRules
import APNSMockNotation
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults

@Suite struct ProfileBuiltInTests {
  /// The documented built-in profiles with their parameters, in the documented order.
  static let documented: [(name: String, parameters: [String])] = [
    ("healthy", []), ("flaky-503", ["rate", "streak"]), ("retry-after", ["rate", "wait"]),
    ("rate-limited-429", ["limit", "per", "burst"]),
    ("unregistered-410", ["rate", "gone_for"]), ("expired-jwt-403", ["max_age"]), ("token-update-storm", []),
    ("bad-token-400", ["rate"]), ("wrong-environment-key", ["spelling"]), ("brownout", ["p50", "ramp"]),
    ("goaway-storm", ["streams", "grace"]), ("connection-reset", ["rate"]), ("shutdown-rolling", ["every", "drain"]),
    ("tls-handshake-stall", ["hold"]), ("tls-bad-certificate", ["use"]), ("single-stream", ["max"]),
    ("stream-throttle", []), ("half-open", []), ("ack-lost", ["rate"]), ("odd-answers", []),
    ("chaos-mix", ["intensity"]), ("channel-limit", ["limit"]), ("broadcast-flaky", ["rate", "streak"]),
  ]

  @Test func builtInsAreDocumented() {
    #expect(ProfileLibrary().names == Self.documented.map(\.name))
  }

  @Test(arguments: documented)
  func loadsWithItsDefaults(name: String, parameters: [String]) throws {
    let loaded = try ProfileLibrary().profile(named: name)
    #expect(loaded.profile.name == name)
    #expect(loaded.profile.parameters.map(\.name) == parameters)
    #expect(loaded.warnings == [])
    #expect(ProfileLibrary().summary(of: name) == loaded.profile.summary)
    #expect(!loaded.profile.summary.isEmpty)
    #expect(!loaded.profile.summary.hasSuffix("."))
    for parameter in loaded.profile.parameters {
      #expect(!parameter.help.isEmpty, "\(name) \(parameter.name)")
      // A slider needs two ends; a probability has its own.
      let hasEnds = parameter.minimum != nil && parameter.maximum != nil
      #expect(parameter.kind == .string || parameter.kind == .probability || hasEnds, "\(name) \(parameter.name)")
    }
  }

  @Test(arguments: documented)
  func loadsWithParametersAtTheirLimits(name: String, parameters: [String]) throws {
    let profile = try ProfileLibrary().profile(named: name).profile
    for parameter in profile.parameters {
      let ends =
        parameter.kind == .probability ? ["0", "1"] : [parameter.minimum, parameter.maximum].compactMap { $0 }
      for end in ends {
        let loaded = try ProfileLibrary().profile(named: name, parameters: [parameter.name: end])
        #expect(loaded.warnings == [], "\(parameter.name)=\(end)")
        #expect(loaded.profile.parameters.first { $0.name == parameter.name }?.value == end)
      }
    }
  }

  @Test(arguments: [
    ("tls-bad-certificate", "use", Action.CertificateDefect.allCases.map(\.rawValue)),
    ("wrong-environment-key", "spelling", ["BadEnvironmentKeyInToken", "BadEnvironmentKeyIdInToken"]),
  ])
  func acceptsEveryNamedValue(name: String, parameter: String, words: [String]) throws {
    for word in words {
      #expect(try ProfileLibrary().profile(named: name, parameters: [parameter: word]).warnings == [])
    }
    #expect(throws: ProfileFailure.self) { try ProfileLibrary().profile(named: name, parameters: [parameter: "other"]) }
  }

  /// The comment at the top of the file is its description for readers.
  @Test(arguments: ProfileLibrary().names)
  func descriptionNamesTheBugItFinds(name: String) throws {
    let text = try #require(ProfileLibrary().source(named: name)).text
    #expect(text.hasPrefix(name == "healthy" ? "# Injects no faults" : "# Reveals "))
    #expect(text.contains("\n# A correct provider ") || text.contains(". A correct provider "))
  }

  // MARK: - Rules of some built-in profiles

  @Test func flaky() throws {
    let rules = try ProfileLibrary().profile(named: "flaky-503", parameters: ["streak": "3"]).profile.rules
    #expect(
      rules == [
        Rule(
          name: "flaky", trigger: Trigger(probability: .fixed(0.2), drawKey: .push, first: 3, countKey: .push),
          action: .respond(.init(status: 503, reason: "ServiceUnavailable")))
      ])
  }

  @Test func expiredProviderToken() throws {
    let profile = try ProfileLibrary().profile(named: "expired-jwt-403", parameters: ["max_age": "45s"]).profile
    #expect(profile.settings == [.tokenUpdateInterval: "45s"])
    #expect(
      profile.rules == [
        Rule(
          name: "stale-provider-token",
          condition: Condition([.init(.tokenAge, .between(above: 45, below: nil))]),
          action: .respond(.init(status: 403, reason: "ExpiredProviderToken")))
      ])
  }

  @Test func goAwayStorm() throws {
    let rules = try ProfileLibrary().profile(named: "goaway-storm").profile.rules
    #expect(
      rules == [
        Rule(
          name: "goaway", trigger: Trigger(every: 20, countKey: .connection),
          action: .goAway(.init(debugData: #"{"reason":"Shutdown"}"#, closeAfter: .seconds(2))))
      ])
  }

  @Test func chaosMix() throws {
    let rules = try ProfileLibrary().profile(named: "chaos-mix").profile.rules
    #expect(
      rules == [
        Rule(
          name: "menu", trigger: Trigger(probability: .fixed(0.15)),
          action: .choose([
            .init(weight: 40, action: .respond(.init(status: 503, reason: "ServiceUnavailable"))),
            .init(weight: 15, action: .respond(.init(status: 500, reason: "InternalServerError"))),
            .init(weight: 15, action: .respond(.init(status: 429, reason: "TooManyRequests"))),
            .init(weight: 10, action: .delay(.uniform(min: .seconds(1), max: .seconds(8)))),
            .init(weight: 10, action: .resetStream(code: 2)),
            .init(weight: 7, action: .resetConnection(afterAccepting: true)),
            .init(weight: 3, action: .hang(for: .seconds(45), endWith: .resetStream)),
          ]))
      ])
  }

  /// A complete profile file: parameters, settings, limits, automatic stop and rules.
  @Test func blackFriday() throws {
    let loaded = try ProfileLibrary().profile(
      of: ProfileSource(name: "black-friday", text: Self.blackFridayText, origin: .inline), parameters: ["limit": "2"])
    let profile = loaded.profile
    #expect(loaded.warnings == [])
    #expect(profile.name == "black-friday")
    #expect(profile.seed == 42)
    #expect(profile.settings == [.firstStreams: "1", .maxStreams: "1000", .idleTimeout: "60m"])
    #expect(profile.limits == Profile.Limits(maxActive: 200, maxDelay: .seconds(60)))
    #expect(profile.stopAfter == .seconds(600))
    #expect(
      profile.parameters == [
        Profile.Parameter(
          name: "limit", kind: .int, defaultValue: "5", value: "2", minimum: "1", help: "pushes per second and token")
      ])
    #expect(
      profile.rules == [
        Rule(
          name: "dead-tokens",
          condition: Condition([
            .init(.topic, .equals("com.acme.shop")), .init(.pushType, .oneOf(["alert", "background"])),
            .init(.payload(pointer: "/aps/alert/title"), .glob(.init("Sale*", foldsCase: false))),
          ]),
          trigger: Trigger(probability: .fixed(0.3), drawKey: .deviceToken),
          action: .respond(
            .init(status: 410, reason: "Unregistered", timestamp: .relative(.seconds(-86_400))))),
        Rule(
          name: "too-fast",
          trigger: Trigger(overLimit: .init(limit: 2, per: .seconds(1), burst: 10, key: .deviceToken)),
          action: .respond(.init(status: 429, reason: "TooManyRequests"))),
        Rule(
          name: "long-tail", injectionPoint: .response,
          action: .delay(.lognormal(median: .milliseconds(40), sigma: 0.6, max: .seconds(2))), continues: true),
      ])
  }

  private static let blackFridayText = """
    name: black-friday
    summary: Rate limits while one app's tokens die off
    extends: [healthy]
    seed: 42                          # omit: random, and printed
    params:                           # parameters: --profile 'black-friday?limit=2', the API, sliders in the page
      limit: {type: int, default: 5, min: 1, help: pushes per second and token}   # int, probability, duration
    apns: {first_streams: 1, max_streams: 1000, idle_timeout: 60m}               # settings of RuleModes.md, overridden
    limits: {max_active: 200, max_hold: 60s}
    stop:   {after: 10m}
    rules:
      - name: dead-tokens
        when:
          topic: com.acme.shop        # a plain string means equals; or {prefix|glob|in|present}
          push_type: {in: [alert, background]}
          payload: {/aps/alert/title: {glob: "Sale*"}}
        trigger: {probability: 0.3, draw_per: device_token}
        do: {respond: {status: 410, reason: Unregistered, timestamp: "-24h"}}
      - name: too-fast
        trigger: {over_limit: {limit: "${limit}", per: 1s, burst: 10, key: device_token}}
        do: {respond: {status: 429, reason: TooManyRequests}}
      - name: long-tail
        at: response
        do: {delay: {lognormal: {median: 40ms, sigma: 0.6, max: 2s}}}
        then: continue
    """
}
