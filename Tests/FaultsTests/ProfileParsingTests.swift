import APNSMockRules
import APNSMockNotation
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults

/// The meaning of each form in a profile file.
@Suite struct ProfileParsingTests {
  @Test(
    arguments: [
      ("topic: com.acme.shop", .topic, .equals("com.acme.shop")),
      ("topic: {equals: x}", .topic, .equals("x")),
      ("topic: {prefix: com.acme}", .topic, .prefix("com.acme")),
      ("topic: {glob: 'com.*.voip'}", .topic, .glob(TextPattern("com.*.voip", foldsCase: false))),
      ("topic: {in: [a, b, a]}", .topic, .oneOf(["a", "b"])),
      ("topic: {present: false}", .topic, .present(false)),
      ("device_token: 'ABCD12'", .deviceToken, .equals("abcd12")),
      ("device_token: 7ab3", .deviceToken, .equals("7ab3")),
      ("device_token: {prefix: AB}", .deviceToken, .prefix("ab")),
      ("device_token: {glob: 'AB*'}", .deviceToken, .glob(TextPattern("ab*", foldsCase: true))),
      ("device_token: {in: ['AA', 'bb']}", .deviceToken, .oneOf(["aa", "bb"])),
      ("push_type: alert", .pushType, .equals("alert")),
      ("priority: 10", .priority, .equals("10")),
      ("priority: {in: [1, 5]}", .priority, .oneOf(["1", "5"])),
      ("priority: {lt: 10}", .priority, .between(above: nil, below: 10)),
      ("collapse_id: {present: true}", .collapseID, .present(true)),
      ("apns_id: 9D3220FE-444B-633E-D1F1-5D0DCB4F537A", .apnsID, .equals("9d3220fe-444b-633e-d1f1-5d0dcb4f537a")),
      ("payload: {/aps/badge: 3}", .payload(pointer: "/aps/badge"), .equals("3")),
      ("payload: {/aps/badge: {gt: -2.5, lt: 8}}", .payload(pointer: "/aps/badge"), .between(above: -2.5, below: 8)),
      ("payload: {/x: true}", .payload(pointer: "/x"), .equals("true")),
      ("payload: {/x: 'on'}", .payload(pointer: "/x"), .equals("on")),
      ("payload: {/x: {present: false}}", .payload(pointer: "/x"), .present(false)),
      ("header: {User-Agent: {prefix: pushy}}", .header(name: "user-agent"), .prefix("pushy")),
      ("size: {gt: 4K}", .size, .between(above: 4096, below: nil)),
      ("size: 100", .size, .equals("100")),
      ("jwt: {age: {gt: 30m, lt: 1h}}", .tokenAge, .between(above: 1800, below: 3600)),
      ("jwt: {team_id: TEAM000001}", .teamID, .equals("TEAM000001")),
      ("jwt: {key_id: {in: [KEY0000001]}}", .keyID, .oneOf(["KEY0000001"])),
      ("client: {prefix: 10.0.}", .client, .prefix("10.0.")),
      ("listener: 1", .listener, .equals("1")),
      ("sni: API.Push.Apple.com", .serverName, .equals("api.push.apple.com")),
      ("certificate: {present: true}", .certificate, .present(true)),
      ("attempt: {gt: 2}", .attempt, .between(above: 2, below: nil)),
    ] as [(String, Condition.Subject, Condition.Match)])
  func conditions(fields: String, subject: Condition.Subject, match: Condition.Match) throws {
    #expect(try ProfileFixture.condition(fields) == Condition([.init(subject, match)]))
  }

  @Test func responseConditions() throws {
    let condition = try ProfileFixture.condition("status: 503, reason: {in: [Shutdown]}", at: .response)
    #expect(condition == Condition([.init(.status, .equals("503")), .init(.reason, .oneOf(["Shutdown"]))]))
  }

  @Test(arguments: [
    ("topic: a, not: {topic: b, attempt: 1}", 1), ("not: [{topic: b}, {topic: c}]", 2), ("not: {not: {topic: a}}", 1),
  ])
  func exceptions(fields: String, count: Int) throws {
    let condition = try ProfileFixture.condition(fields)
    #expect(condition.exceptions.count == count)
  }

  @Test(
    arguments: [
      ("", Trigger()),
      ("probability: 0.25", Trigger(probability: .fixed(0.25))),
      ("probability: 1", Trigger(probability: .fixed(1))),
      ("probability: {ramp: {to: 0.5, over: 60s}}", Trigger(probability: .ramp(from: 0, to: 0.5, over: .seconds(60)))),
      (
        "probability: {ramp: {from: 1, to: 0.5, over: 60s}}",
        Trigger(probability: .ramp(from: 1, to: 0.5, over: .seconds(60)))
      ),
      ("probability: 0.5, draw_per: device_token", Trigger(probability: .fixed(0.5), drawKey: .deviceToken)),
      ("first: 2, times_per: push", Trigger(first: 2, countKey: .push)),
      ("after: 100", Trigger(after: 100)), ("every: 10", Trigger(every: 10)), ("times: 3", Trigger(times: 3)),
      (
        "over_limit: {limit: 5, per: 2s, burst: 7, key: topic}",
        Trigger(overLimit: .init(limit: 5, per: .seconds(2), burst: 7, key: .topic))
      ),
      (
        "over_limit: {limit: 5, key: client}",
        Trigger(overLimit: .init(limit: 5, per: .seconds(1), burst: 5, key: .client))
      ),
      ("over_limit: {limit: 5}", Trigger(overLimit: .init(limit: 5, per: .seconds(1), burst: 5, key: .rule))),
      ("over_limit: {limit: 0.5}", Trigger(overLimit: .init(limit: 0.5, per: .seconds(1), burst: 1, key: .rule))),
      ("window: {after: 30s, for: 10s}", Trigger(window: .init(after: .seconds(30), length: .seconds(10)))),
      ("window: {every: 60s, for: 5s}", Trigger(window: .init(length: .seconds(5), every: .seconds(60)))),
      ("window: {after: 1m}", Trigger(window: .init(after: .seconds(60)))),
      ("after_streams: 5", Trigger(afterStreams: 5)),
    ] as [(String, Trigger)])
  func triggers(fields: String, trigger: Trigger) throws {
    #expect(try ProfileFixture.trigger(fields) == trigger)
  }

  @Test func triggersOfDelayedPushes() throws {
    let rule = try ProfileFixture.rule("trigger: {max_active: 5}, do: {hang: }")
    #expect(rule.trigger == Trigger(maxActive: 5))
  }

  @Test(
    arguments: [
      ("respond: {status: 503}", .respond(.init(status: 503, reason: "ServiceUnavailable"))),
      ("respond: {status: 200}", .respond(.init(status: 200, reason: nil))),
      ("respond: {reason: Shutdown}", .respond(.init(status: 503, reason: "Shutdown"))),
      ("respond: {status: 410}", .respond(.init(status: 410, reason: "Unregistered"))),
      ("respond: {status: 410, timestamp: now}", .respond(.init(status: 410, reason: "Unregistered"))),
      (
        "respond: {status: 410, reason: ExpiredToken, timestamp: -24h}",
        .respond(.init(status: 410, reason: "ExpiredToken", timestamp: .relative(.seconds(-86_400))))
      ),
      (
        "respond: {status: 410, timestamp: {ago: 1h}}",
        .respond(.init(status: 410, reason: "Unregistered", timestamp: .relative(.seconds(-3600))))
      ),
      (
        "respond: {status: 410, timestamp: +1h}",
        .respond(.init(status: 410, reason: "Unregistered", timestamp: .relative(.seconds(3600))))
      ),
      (
        "respond: {status: 410, timestamp: '2026-01-31T12:00:00Z'}",
        .respond(.init(status: 410, reason: "Unregistered", timestamp: .absolute(1_769_860_800_000)))
      ),
      (
        "respond: {reason: TooManyProviderTokenUpdates, latch: true}",
        .respond(.init(status: 429, reason: "TooManyProviderTokenUpdates", blocksTokenUpdates: true))
      ),
      (
        "respond: {status: 503, headers: {Retry-After: 5, x: y}}",
        .respond(
          .init(
            status: 503, reason: "ServiceUnavailable",
            headers: [.init(name: "retry-after", value: "5"), .init(name: "x", value: "y")]))
      ),
      (
        "respond: {status: 503, retry_after: 30s}",
        .respond(.init(status: 503, reason: "ServiceUnavailable", retryAfter: .seconds(.seconds(30))))
      ),
      (
        "respond: {status: 503, retry_after: {date: 2m}}",
        .respond(.init(status: 503, reason: "ServiceUnavailable", retryAfter: .date(.seconds(120))))
      ),
      (
        "respond: {status: 503, body: 'gone fishing'}",
        .respond(.init(status: 503, reason: nil, body: "gone fishing"))
      ),
      (
        "respond: {status: 400, body: {reason: BadTopic, a: [1, true, 'x', ~]}}",
        .respond(.init(status: 400, reason: nil, body: #"{"reason":"BadTopic","a":[1,true,"x",null]}"#))
      ),
      ("delay: {fixed: 500ms}", .delay(.fixed(.milliseconds(500)))),
      ("delay: {uniform: {min: 1s, max: 2s}}", .delay(.uniform(min: .seconds(1), max: .seconds(2)))),
      (
        "delay: {lognormal: {median: 40ms, sigma: 0.6, max: 2s}}",
        .delay(.lognormal(median: .milliseconds(40), sigma: 0.6, max: .seconds(2)))
      ),
      ("hang: ", .hang(for: nil, endWith: .resetStream)),
      ("hang: {for: 45s, end_with: answer}", .hang(for: .seconds(45), endWith: .answer)),
      ("reset_stream: {}", .resetStream(code: 2)),
      ("reset_stream: {code: REFUSED_STREAM}", .resetStream(code: 7)),
      ("reset_stream: {code: 99}", .resetStream(code: 99)),
      ("reset_connection: {}", .resetConnection(afterAccepting: false)),
      ("reset_connection: {after_accepting: true}", .resetConnection(afterAccepting: true)),
      ("goaway: {}", .goAway(.init())),
      (
        "goaway: {code: ENHANCE_YOUR_CALM, last_stream: all, debug: slow down, twice: true, close_after: never}",
        .goAway(.init(code: 11, lastStream: .all, debugData: "slow down", twice: true, closeAfter: nil))
      ),
      (
        "goaway: {debug: {reason: Shutdown, timestamp: 12}}",
        .goAway(.init(debugData: #"{"reason":"Shutdown","timestamp":12}"#))
      ),
      ("close: {}", .close), ("close: ", .close), ("pass: {}", .pass),
      ("starve_window: ", .starveWindow(for: nil)), ("starve_window: {for: 5s}", .starveWindow(for: .seconds(5))),
      (
        "choose: [{weight: 3, close: }, {pass: }]",
        .choose([.init(weight: 3, action: .close), .init(weight: 1, action: .pass)])
      ),
      (
        "sequence: {key: device_token, steps: [{respond: {status: 503}}, {pass: {}}], on_end: cycle}",
        .sequence(
          key: .deviceToken, steps: [.respond(.init(status: 503, reason: "ServiceUnavailable")), .pass], onEnd: .cycle)
      ),
      (
        "sequence: {steps: [{choose: [{close: }]}]}",
        .sequence(key: .rule, steps: [.choose([.init(weight: 1, action: .close)])], onEnd: .stay)
      ),
    ] as [(String, Action)])
  func actions(fields: String, action: Action) throws {
    #expect(try ProfileFixture.action(fields) == action)
  }

  @Test(
    arguments: [
      (.response, "lose_answer: ", .loseResponse(endWith: .nothing)),
      (.response, "lose_answer: {end_with: reset_stream}", .loseResponse(endWith: .resetStream)),
      (.response, "dribble: {chunks: 3, over: 2s}", .dribble(chunks: 3, over: .seconds(2))),
      (.response, "split_body: ", .splitBody), (.response, "truncate_body: ", .truncateBody),
      (.response, "garble_body: ", .garbleBody), (.response, "empty_error_body: ", .emptyErrorBody),
      (.response, "drop_header: {name: Apns-Id}", .dropHeader(name: "apns-id")),
      (.response, "change_id: {to: upper_case}", .changeID(.upperCase)),
      (
        .connection, "drain: {for: 5s}",
        .respondThenShutDown(for: .seconds(5), respond: .init(status: 503, reason: "Shutdown"))
      ),
      (
        .connection, "drain: {for: 5s, respond: {status: 500}}",
        .respondThenShutDown(for: .seconds(5), respond: .init(status: 500, reason: "InternalServerError"))
      ),
      (.connection, "ignore_pings: ", .ignorePings(for: nil)),
      (
        .settings, "settings: {max_concurrent_streams: 1, initial_window_size: 0, max_header_list_size: 100}",
        .settings(.init(maxConcurrentStreams: 1, initialWindowSize: 0, maxHeaderListSize: 100))
      ),
      (.settings, "settings: {delay: 3s}", .settings(.init(delay: .seconds(3)))),
      (
        .connection, "settings: {max_concurrent_streams: 1, after: 2s, ack_client: false}",
        .settings(.init(maxConcurrentStreams: 1, after: .seconds(2), acknowledgesClient: false))
      ),
      (.accept, "refuse: ", .refuse), (.accept, "silence: {for: 1m}", .silence(for: .seconds(60))),
      (.tls, "stall: ", .stall(for: nil, endWith: .close)),
      (.tls, "stall: {for: 2s, end_with: answer}", .stall(for: .seconds(2), endWith: .answer)),
      (.tls, "alert: ", .alert(code: 40)), (.tls, "alert: {name: unrecognized_name}", .alert(code: 112)),
      (.tls, "alert: {name: 200}", .alert(code: 200)),
      (.tls, "certificate: {use: wrong_name}", .certificate(.wrongName)),
    ] as [(InjectionPoint, String, Action)])
  func actionsOfOtherMoments(injectionPoint: InjectionPoint, fields: String, action: Action) throws {
    #expect(try ProfileFixture.action(fields, at: injectionPoint) == action)
  }

  @Test func ruleAsText() throws {
    let rule = try ProfileFixture.rule(
      "name: x, at: response, stage: before_validation, do: {delay: {fixed: 1s}}, then: stop")
    #expect(
      rule
        == Rule(
          name: "x", injectionPoint: .response, action: .delay(.fixed(.seconds(1))), continues: false,
          stage: .beforeValidation)
    )
  }

  @Test func rulesWithoutANameAreNumbered() throws {
    let profile = try ProfileFixture.profile(
      "rules: [{do: {delay: {fixed: 1s}}}, {name: x, do: {delay: {fixed: 1s}}}, {do: {close: }}]")
    #expect(profile.rules.map(\.name) == ["rule-1", "x", "rule-3"])
    #expect(profile.name == "p")
  }

  @Test func profileHeader() throws {
    let profile = try ProfileFixture.profile(
      """
      name: all
      summary: "One: two"
      seed: 18446744073709551615
      apns: {throttle_on_4xx: on, device_rate: 5/1s, errors_before_goaway: off}
      limits: {max_hold: 5s}
      stop: {after: 5m}
      push_key: apns_id
      rules:
      """)
    #expect(
      profile
        == Profile(
          name: "all", summary: "One: two", seed: .max,
          settings: [.throttleOn4xx: "on", .deviceRate: "5/1s", .errorsBeforeGoaway: "off"],
          limits: .init(maxDelay: .seconds(5)), stopAfter: .seconds(300), pushIdentity: .apnsID))
  }

  /// JSON is valid YAML, and its strings remain strings.
  @Test func readsJSON() throws {
    let definition = try AddedRuleDefinition.parse(
      #"{"name": "down", "when": {"device_token": "0410", "topic": {"in": ["1", "true"]}, "priority": 10}, "#
        + #""trigger": {"probability": 0.5}, "do": {"respond": {"status": 503}}, "ttl": "5m"}"#)
    #expect(definition.ttl == .seconds(300))
    #expect(definition.isNamed)
    #expect(definition.warnings == [])
    #expect(
      definition.rule.condition
        == Condition([
          .init(.deviceToken, .equals("0410")), .init(.topic, .oneOf(["1", "true"])), .init(.priority, .equals("10")),
        ]))
  }

  @Test func singleRule() throws {
    let definition = try AddedRuleDefinition.parse("do: {close: }", defaultName: "rule-7")
    #expect(
      definition
        == AddedRuleDefinition(
          rule: Rule(name: "rule-7", action: .close), isNamed: false, ttl: nil, scope: nil, run: nil, warnings: []))
  }

  @Test(arguments: [
    ("do: {close: }\nttl: 0s", "rule:2:6: ttl: 0s is not longer than zero"),
    ("do: {close: }\nttl: 5", "rule:2:6: ttl: 5 has no unit, did you mean 5s?"),
    (
      "do: {delay: {fixed: '${x}'}}",
      #"rule:1:21: do.delay.fixed: "${x}": only profiles have parameters"#
    ),
    ("du: {close: }", #"rule:1:1: du: unknown, did you mean "do"?"#),
  ])
  func problemsInASingleRule(text: String, problem: String) {
    let failure = #expect(throws: ProfileFailure.self) { try AddedRuleDefinition.parse(text) }
    #expect(failure?.problems.first?.description == problem)
  }
}
