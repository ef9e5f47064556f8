import APNSMockRules
import APNSMockNotation
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults

@Suite struct ProfileExtendsTests {
  /// Returns a library with uploaded profiles, by name and text.
  private static func library(_ texts: KeyValuePairs<String, String>) throws -> ProfileLibrary {
    var library = ProfileLibrary()
    for (name, text) in texts { library = try library.adding(name: name, text: text).library }
    return library
  }

  private static let base = """
    summary: The base
    seed: 1
    params:
      rate: {type: probability, default: 0.5, max: 0.9, help: how often}
      hold: {type: duration, default: 1s}
    apns: {idle_timeout: 5m, max_streams: 10}
    limits: {max_active: 7, max_hold: 7s}
    stop: {after: 7m}
    push_key: apns_id
    rules:
      - {name: one, trigger: {probability: "${rate}"}, do: {respond: {status: 503}}}
      - {name: two, do: {delay: {fixed: "${hold}"}}}
    """

  @Test func extendingProfileHasPrecedence() throws {
    let library = try Self.library(["base": Self.base])
    let profile = try library.profile(
      of: ProfileFixture.source(
        """
        extends: base
        seed: 2
        params: {rate: 0.25}
        apns: {max_streams: 20}
        limits: {max_hold: 9s}
        rules:
          - {name: zero, when: {topic: x}, do: {close: }}
          - {name: one, trigger: {probability: "${rate}"}, do: {respond: {status: 500}}}
        """)
    ).profile
    #expect(profile.summary == "")
    #expect(profile.seed == 2)
    #expect(profile.settings == [.idleTimeout: "5m", .maxStreams: "20"])
    #expect(profile.limits == Profile.Limits(maxActive: 7, maxDelay: .seconds(9)))
    #expect(profile.stopAfter == .seconds(420))
    #expect(profile.pushIdentity == .apnsID)
    #expect(
      profile.parameters == [
        .init(name: "rate", kind: .probability, defaultValue: "0.25", maximum: "0.9", help: "how often"),
        .init(name: "hold", kind: .duration, defaultValue: "1s"),
      ])
    #expect(profile.rules.map(\.name) == ["zero", "one", "two"])
    #expect(profile.rules[1].trigger.probability == .fixed(0.25))
    #expect(profile.rules[1].action == .respond(.init(status: 500, reason: "InternalServerError")))
    #expect(profile.rules[2].action == .delay(.fixed(.seconds(1))))
  }

  @Test func unsetFieldsComeFromTheBase() throws {
    let library = try Self.library(["base": Self.base])
    let base = try library.profile(named: "base", parameters: ["hold": "3s"]).profile
    var profile = try library.profile(of: ProfileFixture.source("extends: [base]"), parameters: ["hold": "3s"]).profile
    #expect(profile.name == "p")
    profile.name = base.name
    profile.summary = base.summary
    #expect(profile == base)
  }

  /// The first of two bases has priority; a base that they share is included once.
  @Test func severalBases() throws {
    let library = try Self.library([
      "root": "rules: [{name: root, do: {delay: {fixed: 9s}}}]",
      "left": "extends: root\nseed: 1\nrules: [{name: twin, do: {delay: {fixed: 1s}}}]",
      "right":
        "extends: root\nseed: 2\nrules: [{name: twin, do: {delay: {fixed: 2s}}}, {name: right, do: {hang: }}]",
    ])
    let profile = try library.profile(of: ProfileFixture.source("extends: [left, right]")).profile
    #expect(profile.seed == 1)
    #expect(profile.rules.map(\.name) == ["twin", "root", "right"])
    #expect(profile.rules[0].action == .delay(.fixed(.seconds(1))))
  }

  @Test func cyclesAreReported() throws {
    var library = ProfileLibrary()
    library = try library.adding(name: "a", text: "summary: a").library
    library = try library.adding(name: "b", text: "extends: a").library
    library = try library.adding(name: "c", text: "extends: [b]").library
    let failure = #expect(throws: ProfileFailure.self) { try library.adding(name: "a", text: "extends: [healthy, c]") }
    #expect(failure?.problems.map(\.description) == ["b:1:10: extends: circular reference: a → c → b → a"])
  }

  @Test func problemsOfABaseNameItsFile() throws {
    let library = try Self.library(["base": Self.base])
    let source = ProfileFixture.source("extends: base\nparams: {hold: {type: int, default: 5}}")
    let failure = #expect(throws: ProfileFailure.self) { try library.profile(of: source) }
    #expect(
      failure?.problems.map(\.description) == [
        #"base:12:37: rules[1].do.delay.fixed: the parameter "hold" is of type int, expected a duration, "#
          + "make its type duration"
      ])
  }

  /// The value of a parameter is checked where it is used.
  @Test func parameterValuesAreValidatedWhereUsed() throws {
    let text = """
      params: {use: {type: string, default: expired}}
      rules:
        - at: tls
          do: {certificate: {use: "${use}"}}
      """
    let failure = #expect(throws: ProfileFailure.self) { try ProfileFixture.profile(text, ["use": "expird"]) }
    #expect(
      failure?.problems.map(\.description) == [
        #"p.yaml:4:29: rules[0].do.certificate.use: unknown value "expird" (parameter "use"), did you mean "expired"?"#
      ])
    #expect(try ProfileFixture.profile(text, ["use": "untrusted"]).rules[0].action == .certificate(.untrusted))
  }

  @Test(arguments: [
    ("int", "5", "{first: \"${x}\"}"), ("probability", "0.5", "{probability: \"${x}\"}"),
    ("duration", "5s", "{window: {for: \"${x}\"}}"), ("string", "push", "{probability: 0.5, draw_per: \"${x}\"}"),
    ("int", "5", "{over_limit: {limit: \"${x}\"}}"), ("probability", "0.5", "{over_limit: {limit: \"${x}\"}}"),
  ])
  func parameterTypes(type: String, value: String, trigger: String) throws {
    let text = "params: {x: {type: \(type), default: \(value)}}\nrules: [{trigger: \(trigger), do: {close: }}]"
    #expect(ProfileFixture.lint(text) == [])
  }

  @Test func boolParameters() throws {
    let text = "params: {x: {type: bool, default: off}}\nrules: [{do: {goaway: {twice: \"${x}\"}}}]"
    #expect(try ProfileFixture.profile(text).rules[0].action == .goAway(.init(twice: false)))
    #expect(try ProfileFixture.profile(text, ["x": "true"]).rules[0].action == .goAway(.init(twice: true)))
  }
}
