import APNSMockRules
import APNSMockNotation
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults

/// Written rules and profiles can be read, and have the same meaning.
@Suite struct ProfileWritingTests {
  @Test(arguments: ProfileLibrary().names)
  func builtInRules(name: String) throws {
    for rule in try ProfileLibrary().profile(named: name).profile.rules { try Self.expectSame(rule) }
  }

  @Test(
    arguments: [
      Condition(),
      Condition([
        .init(.deviceToken, .oneOf(["ab12", "0410"])), .init(.topic, .glob(TextPattern("*.voip", foldsCase: false))),
      ]),
      Condition([.init(.priority, .equals("10")), .init(.size, .between(above: 100, below: 4096))]),
      Condition([
        .init(.payload(pointer: "/aps/badge"), .between(above: -2.5, below: nil)),
        .init(.payload(pointer: "/x"), .equals("3")), .init(.header(name: "user-agent"), .prefix("p")),
      ]),
      Condition([.init(.tokenAge, .between(above: 1800, below: 3600.5)), .init(.teamID, .present(true))]),
      Condition(
        [.init(.attempt, .oneOf(["1", "3"]))],
        exceptions: [
          Condition([.init(.topic, .equals("a"))]),
          Condition([.init(.client, .equals("::1"))], exceptions: [Condition([.init(.listener, .equals("0"))])]),
        ]),
    ])
  func conditions(condition: Condition) throws {
    try Self.expectSame(Rule(name: "x", condition: condition, action: .close))
  }

  @Test(
    arguments: [
      Trigger(probability: .fixed(0.123), drawKey: .topic, first: 3, after: 1, every: 2, times: 4, countKey: .push),
      Trigger(probability: .fixed(1)),
      Trigger(probability: .ramp(from: 0.1, to: 0.9, over: .milliseconds(1500))),
      Trigger(overLimit: .init(limit: 0.5, per: .seconds(90), burst: 2, key: .deviceToken)),
      Trigger(window: .init(after: .seconds(30), length: .seconds(10))),
      Trigger(window: .init(length: .seconds(5), every: .seconds(60))),
      Trigger(window: .init()), Trigger(afterStreams: 7, maxActive: 9),
    ])
  func triggers(trigger: Trigger) throws {
    try Self.expectSame(Rule(name: "x", trigger: trigger, action: .hang(for: nil, endWith: .nothing)))
  }

  @Test(
    arguments: [
      (.request, .respond(.init(status: 200, reason: nil))),
      (.request, .respond(.init(status: 503, reason: nil))),
      (.request, .respond(.init(status: 418, reason: "Teapot"))),
      (.request, .respond(.init(status: 400, reason: "ReasonOfTheFuture"))),
      (.request, .respond(.init(status: 410, reason: "Unregistered", timestamp: .relative(.seconds(-86_400))))),
      (.request, .respond(.init(status: 410, reason: "ExpiredToken", timestamp: .absolute(1_769_860_800_123)))),
      (.request, .respond(.init(status: 503, reason: "Shutdown", timestamp: .relative(.seconds(1))))),
      (
        .request,
        .respond(.init(status: 500, reason: nil, headers: [.init(name: "retry-after", value: "5")], body: "{\"a\":1}"))
      ),
      (.request, .respond(.init(status: 503, reason: "ServiceUnavailable", retryAfter: .seconds(.seconds(90))))),
      (.request, .respond(.init(status: 503, reason: "ServiceUnavailable", retryAfter: .date(.milliseconds(1500))))),
      (.request, .respond(.init(status: 429, reason: "TooManyProviderTokenUpdates", blocksTokenUpdates: true))),
      (.request, .delay(.fixed(.milliseconds(20)))),
      (.request, .delay(.lognormal(median: .milliseconds(40), sigma: 0.6, max: .seconds(2)))),
      (.request, .hang(for: .seconds(45), endWith: .answer)),
      (.request, .resetStream(code: 7)), (.request, .resetStream(code: 1234)),
      (.request, .resetConnection(afterAccepting: true)),
      (.request, .goAway(.init(code: 11, lastStream: .all, debugData: "x\"y", twice: true, closeAfter: nil))),
      (.request, .starveWindow(for: nil)), (.request, .starveWindow(for: .seconds(1))),
      (.request, .choose([.init(weight: 1.5, action: .close), .init(weight: 2, action: .pass)])),
      (
        .request,
        .sequence(key: .deviceToken, steps: [.choose([.init(weight: 1, action: .close)]), .pass], onEnd: .cycle)
      ),
      (.response, .loseResponse(endWith: .resetStream)), (.response, .dribble(chunks: 3, over: .seconds(1))),
      (.response, .splitBody), (.response, .truncateBody), (.response, .garbleBody), (.response, .emptyErrorBody),
      (.response, .dropHeader(name: "apns-id")), (.response, .changeID(.lowerCase)),
      (.connection, .respondThenShutDown(for: .seconds(5), respond: .init(status: 503, reason: "Shutdown"))),
      (.connection, .ignorePings(for: .seconds(1))),
      (
        .connection,
        .settings(
          .init(
            maxConcurrentStreams: 1, initialWindowSize: 0, maxHeaderListSize: .max, after: .seconds(1),
            acknowledgesClient: false))
      ),
      (.settings, .settings(.init(delay: .seconds(3)))), (.connection, .silence(for: .seconds(1))),
      (.accept, .refuse), (.accept, .silence(for: nil)), (.tls, .stall(for: .seconds(1), endWith: .answer)),
      (.tls, .alert(code: 112)), (.tls, .alert(code: 250)), (.tls, .certificate(.wrongName)),
    ] as [(InjectionPoint, Action)])
  func actions(injectionPoint: InjectionPoint, action: Action) throws {
    try Self.expectSame(Rule(name: "x", injectionPoint: injectionPoint, action: action))
  }

  /// Rules that have all keys together; see `everyKeyOfARuleIsWritten`.
  private static let rules = [
    """
    {name: all, when: {device_token: ab, topic: {prefix: com}, push_type: alert, priority: {gt: 1, lt: 10},
    collapse_id: {present: true}, apns_id: {glob: "9d*"}, payload: {/a: {equals: b}}, header: {x: b}, size: {in: [1, 2K]},
    jwt: {age: {gt: 30m}, team_id: T, key_id: K}, client: "::1", address: 10.0.0.0/8, listener: 0, environment: sandbox, kind: push, sni: localhost,
    certificate: com.a, attempt: 1, q: "type:background larger:1K", not: {topic: com.b}},
    trigger: {probability: 0.5, draw_per: push, first: 9, after: 1, every: 2, times: 3, times_per: topic,
    over_limit: {limit: 5, per: 2s, burst: 7, key: client}, window: {after: 1s, for: 2s, every: 3s}, after_streams: 4,
    max_active: 6}, do: {hang: {for: 1s, end_with: close}}, then: stop, stage: before_validation}
    """,
    "{trigger: {probability: {ramp: {from: 0.1, to: 0.2, over: 1m}}}, do: {pass: }}",
    "{at: response, when: {status: 400, reason: BadPath}, do: {delay: {fixed: 1s}}}",
    "{at: connection, when: {age: {gt: 1s}, idle: {gt: 1s}}, do: {close: }}",
    """
    {do: {sequence: {key: topic, on_end: cycle, steps: [{respond: {status: 429, reason: TooManyProviderTokenUpdates,
    headers: {a: b}, latch: true}}, {respond: {status: 410, timestamp: -1h}}, {respond: {status: 418, body: {a: b},
    unreal: true}}, {choose: [{weight: 2, close: }, {delay: {uniform: {min: 1s, max: 2s}}}]},
    {delay: {lognormal: {median: 1s, sigma: 0.5, max: 2s}}}, {reset_stream: {code: CANCEL}},
    {respond: {status: 503, retry_after: {date: 1s}}},
    {reset_connection: {after_accepting: true}}, {starve_window: {for: 1s}}, {goaway: {code: NO_ERROR, last_stream: this,
    debug: x, twice: true, close_after: never}}]}}}
    """,
    """
    {at: response, do: {choose: [{lose_answer: {end_with: reset_stream}}, {dribble: {chunks: 3, over: 1s}}, {split_body: },
    {truncate_body: }, {garble_body: }, {empty_error_body: }, {drop_header: {name: a}}, {change_id: {to: upper_case}}]}}
    """,
    """
    {at: connection, do: {choose: [{drain: {for: 1s, respond: {status: 500}}}, {ignore_pings: {for: 1s}},
    {silence: {for: 1s}}, {settings: {max_concurrent_streams: 1, initial_window_size: 2, max_header_list_size: 3,
    after: 1s, ack_client: false}}]}}
    """,
    "{at: settings, do: {settings: {delay: 1s}}}", "{at: accept, do: {refuse: }}",
    """
    {at: tls, do: {choose: [{stall: {for: 1s, end_with: answer}}, {alert: {name: access_denied}},
    {certificate: {use: expired}}]}}
    """,
  ]

  @Test(arguments: rules)
  func ruleText(text: String) throws { try Self.expectSame(AddedRuleDefinition.parse(text).rule) }

  /// Every action and every key of the tables is read, written and read again by one of the texts above.
  @Test func everyKeyOfARuleIsWritten() throws {
    var written: Set<String> = []
    for text in Self.rules {
      let rule = try AddedRuleDefinition.parse(text).rule
      let json = ProfileFixture.json { rule.write(to: &$0) }
      SchemaForm.map(RuleValues.schema.description).collectKeys(of: try #require(try YAMLNode.parse(json)), &written)
    }
    var expected = Set(Action.Name.allCases.map(\.rawValue))
    // A time in the past is written as a duration, and an exact value without a map.
    for map in RuleValues.schema.description.withNestedMaps where map.name != "ago" {
      expected.formUnion(map.fields.map { "\(map.name).\($0.name)" })
    }
    #expect(
      expected.subtracting(written).sorted() == [
        "match.\(MatchKey.equals.rawValue)", "rule.run", "rule.scope", "rule.\(RuleValues.ttl)",
      ])
  }

  @Test func ruleAsText() throws {
    try Self.expectSame(
      Rule(
        name: "x", injectionPoint: .response, action: .delay(.fixed(.zero)), continues: false, stage: .beforeValidation)
    )
    try Self.expectSame(Rule(name: "x", injectionPoint: .response, action: .splitBody, continues: true))
  }

  @Test func ruleAsYAML() throws {
    let rule = try ProfileFixture.rule(
      "name: down, when: {device_token: {in: ['ab', 'aa']}, priority: 5}, trigger: {probability: 0.5}, "
        + "do: {respond: {status: 503}}")
    #expect(
      ProfileFixture.json { rule.write(to: &$0) }
        == #"{"name":"down","at":"request","when":{"device_token":{"in":["aa","ab"]},"priority":5},"#
        + #""trigger":{"probability":0.5},"do":{"respond":{"status":503,"reason":"ServiceUnavailable"}}}"#)
    #expect(
      ProfileFixture.json { writer in
        Rule(name: "x", action: .close).write(to: &writer) { $0.member("ttl", "5m") }
      } == #"{"name":"x","at":"request","do":{"close":{}},"ttl":"5m"}"#)
  }

  @Test func profileAsYAML() throws {
    let profile = try ProfileLibrary().profile(named: "flaky-503", parameters: ["rate": "0.5"]).profile
    #expect(
      ProfileFixture.json(profile.write)
        == #"{"name":"flaky-503","summary":"Some pushes get 503 ServiceUnavailable on their first attempts","params":"#
        + #"{"rate":{"type":"probability","default":0.2,"value":0.5,"#
        + #""help":"how many of the pushes are refused at first"},"#
        + #""streak":{"type":"int","default":1,"value":1,"min":1,"max":10,"#
        + #""help":"how many attempts of such a push are refused"}},"apns":{},"#
        + #""limits":{"max_active":100000,"max_hold":"10m"},"push_key":"content","#
        + #""rules":[{"name":"flaky","at":"request","#
        + #""trigger":{"probability":0.5,"draw_per":"push","first":1,"times_per":"push"},"#
        + #""do":{"respond":{"status":503,"reason":"ServiceUnavailable"}}}]}"#)
  }

  /// A written profile is a valid profile file; only its parameters are replaced by their values.
  @Test func completeProfile() throws {
    var profile = try ProfileLibrary().profile(named: "stream-throttle").profile
    profile.seed = .max
    profile.stopAfter = .seconds(600)
    profile.pushIdentity = .apnsID
    profile.limits = .init(maxActive: 5, maxDelay: .seconds(61))
    let text = ProfileFixture.json(profile.write)
    let loaded = try ProfileLibrary().profile(of: ProfileSource(name: "x", text: text, origin: .inline))
    #expect(loaded == LoadedProfile(profile: profile, warnings: []))
  }

  @Test func parametersKeepTheirTypes() throws {
    let profile = try ProfileFixture.profile(
      """
      params:
        a: {type: bool, default: on}
        b: {type: duration, default: 5s, min: 1s}
        c: {type: string, default: "7"}
      """)
    #expect(
      profile.parameters.map { parameter in ProfileFixture.json(parameter.write) } == [
        #"{"type":"bool","default":true,"value":true,"help":""}"#,
        #"{"type":"duration","default":"5s","value":"5s","min":"1s","help":""}"#,
        #"{"type":"string","default":"7","value":"7","help":""}"#,
      ])
  }

  static func expectSame(_ rule: Rule) throws {
    let text = ProfileFixture.json { rule.write(to: &$0) }
    let read = try AddedRuleDefinition.parse(text)
    #expect(read.rule == rule, "\(text)")
    #expect(read.warnings.map(\.description) == [])
  }
}

extension SchemaForm {
  /// Adds the names of actions and the keys, after the name of their map, that a value contains.
  fileprivate func collectKeys(of node: YAMLNode, _ keys: inout Set<String>) {
    switch (self, node.content) {
    case (.map(let map), .map(let entries)):
      for entry in entries {
        keys.insert("\(map.name).\(entry.key)")
        map.fields.first { $0.name == entry.key }?.form.collectKeys(of: entry.value, &keys)
      }
    case (.reference("action"), .map(let entries)), (.reference("choice"), .map(let entries)):
      for entry in entries {
        guard let name = Action.Name(rawValue: entry.key) else { continue }
        keys.insert(name.rawValue)
        name.schema.form.collectKeys(of: entry.value, &keys)
      }
    case (.reference("condition"), _): SchemaForm.map(Condition.schema.description).collectKeys(of: node, &keys)
    case (.reference(let name), .map) where name.hasPrefix("match_"):
      SchemaForm.map(MatchKey.description).collectKeys(of: node, &keys)
    case (.list(let element), .list(let nodes)):
      for node in nodes { element.collectKeys(of: node, &keys) }
    case (.named(let value), .map(let entries)):
      for entry in entries { value.collectKeys(of: entry.value, &keys) }
    case (.either(let one, let other), _):
      one.collectKeys(of: node, &keys)
      other.collectKeys(of: node, &keys)
    default: break
    }
  }
}
