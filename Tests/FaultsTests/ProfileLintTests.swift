import APNSMockNotation
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults

/// Errors in a profile: their positions, messages and suggestions.
@Suite struct ProfileLintTests {
  @Test(
    arguments: LintTable(
      """
      rules:\\n  - trigger:\\n      probabilty: 1\\n    do: {close: {}}
      => 3:7: rules[0].trigger.probabilty: unknown, did you mean "probability"?
      nam: x
      => 1:1: nam: unknown, did you mean "name"?
      zzz: x
      => 1:1: zzz: unknown, expected one of name, summary, extends, seed, params, apns, limits, stop, push_key, \
      rules
      rules: [{on: tls, do: {close: {}}}]
      => 1:10: rules[0].on: unknown, did you mean "at"?
      rules: [{do: {clos: {}}}]
      => 1:15: rules[0].do.clos: unknown, did you mean "close"?
      rules: [{do: {close: {for: 5s}}}]
      => 1:23: rules[0].do.close.for: unknown, no keys are allowed here
      rules: [{do: {hang: {fro: 5s}}}]
      => 1:22: rules[0].do.hang.fro: unknown, did you mean "for"?
      rules: [{when: {token: aa}, do: {close: {}}}]
      => 1:17: rules[0].when.token: unknown, did you mean "device_token"?
      rules: [{when: {jwt: {kid: K}}, do: {close: {}}}]
      => 1:23: rules[0].when.jwt.kid: unknown, expected one of age, team_id, key_id
      rules: [{ttl: 5m, do: {close: {}}}]
      => 1:10: rules[0].ttl: unknown, expected one of name, at, when, trigger, do, then, stage
      apns: {idle_timeot: 4s}
      => 1:8: apns.idle_timeot: unknown, did you mean "idle_timeout"?
      a: 1\\nb: 2\\na: 3
      => 1:1: duplicate keys: a, keep one of them
      rules: 5
      => 1:8: rules: expected a list, not a number
      rules: [5]
      => 1:9: rules[0]: expected a map, not a number
      apns: []
      => 1:7: apns: expected a map, not a list
      - name: x
      => 1:1: expected a map, not a list
      """))
  func structure(row: LintTable.Row) {
    #expect(ProfileFixture.lint(row.text) == ["p.yaml:" + row.problem])
  }

  @Test(
    arguments: LintTable(
      """
      name: Black Friday
      => 1:7: name: "Black Friday": a name is lower-case letters, digits and hyphens, at most 64, and no \
      hyphen in front, did you mean "black-friday"?
      extends: flaky-504
      => 1:10: extends: unknown profile "flaky-504", did you mean "flaky-503"?
      name: x\\nextends: [x]
      => 2:11: extends[0]: circular reference: x → x
      seed: -4
      => 1:7: seed: -4 is not a whole number from 0 to 2⁶⁴−1
      seed: 18446744073709551616
      => 1:7: seed: 18446744073709551616 is not a whole number from 0 to 2⁶⁴−1
      limits: {max_active: 0}
      => 1:22: limits.max_active: 0 is not a whole number from 1 to 1000000
      limits: {max_hold: 0s}
      => 1:20: limits.max_hold: 0s is not longer than zero
      stop: {after: 5}
      => 1:15: stop.after: 5 has no unit, did you mean 5s?
      stop: {}
      => 1:7: stop: after is missing
      push_key: id
      => 1:11: push_key: unknown value "id", use one of content, apns_id
      apns: {max_streams: 0}
      => 1:21: apns.max_streams: cannot be "0", expected a whole number from 1 to 1073741824
      apns: {throttle_on_4xx: maybe}
      => 1:25: apns.throttle_on_4xx: cannot be "maybe", expected on or off
      apns: {device_rate: [5]}
      => 1:21: apns.device_rate: expected one value, not a list
      rules:\\n  - {name: a, do: {close: }}\\n  - {name: a, when: {topic: x}, do: {close: }}
      => 3:5: rules[1]: there is a rule "a" above already, in line 2, rename it
      """))
  func headers(row: LintTable.Row) {
    #expect(ProfileFixture.lint(row.text) == ["p.yaml:" + row.problem])
  }

  /// The fields of one rule. Lists of all actions are omitted from the expected messages.
  @Test(
    arguments: LintTable(
      """
      name: x
      => 2:5: rules[0]: do is missing
      do: ~
      => 2:10: rules[0].do: the action is missing, expected one of
      do: close
      => 2:10: rules[0].do: an action is a map, not a string, did you mean {close: {}}?
      do: [{close: {}}]
      => 2:10: rules[0].do: expected one action, not a list, choose and sequence accept several
      do: {close: {}, pass: {}}
      => 2:22: rules[0].do.pass: a second action, after close, a rule has one; choose and sequence accept several
      do: {choose: []}
      => 2:19: rules[0].do.choose: choose has no alternatives
      do: {choose: [{weight: 0, close: {}}]}
      => 2:29: rules[0].do.choose[0].weight: 0 is not a number above 0
      do: {choose: [{weight: 1}]}
      => 2:20: rules[0].do.choose[0]: the action is missing, expected one of
      do: {choose: [{close: {}, pass: {}}]}
      => 2:32: rules[0].do.choose[0].pass: a second action, after close, each part has one
      do: {choose: [{stall: {}}]}
      => 2:21: rules[0].do.choose[0].stall: not possible at request, did you mean at: tls?
      do: {weight: 3, close: {}}
      => 2:11: rules[0].do.weight: unknown,
      do: {sequence: {steps: []}}
      => 2:29: rules[0].do.sequence.steps: sequence has no steps
      do: {sequence: {key: attempt, steps: [{pass: }]}}
      => 2:27: rules[0].do.sequence.key: an attempt is unique, so it cannot be counted, did you mean \
      "push"?
      at: tls, do: {close: {}}
      => 2:20: rules[0].do.close: not possible at tls, did you mean at: request, response or connection?
      at: tls, when: {topic: x}, do: {stall: }
      => 2:22: rules[0].when.topic: not available at tls, use at: request or response
      at: accept, when: {sni: x}, do: {refuse: }
      => 2:25: rules[0].when.sni: not available at accept, use at: tls, settings, request, response or connection
      at: rqest, do: {close: }
      => 2:10: rules[0].at: unknown value "rqest", did you mean "request"?
      do: {respond: {}}
      => 2:20: rules[0].do.respond: status is missing, {status: 503}, or a reason of APNs, which determines it
      do: {respond: {status: 410, reason: BadDeviceToken}}
      => 2:34: rules[0].do.respond.reason: BadDeviceToken is a 400, not a 410, a 410 has ExpiredToken or \
      Unregistered, or set unreal: true
      do: {respond: {status: 200, reason: BadDeviceToken}}
      => 2:34: rules[0].do.respond.reason: a 200 has no reason, omit it, or set unreal: true
      do: {respond: {status: 418}}
      => 2:21: rules[0].do.respond.status: APNs has no status 418, its statuses are 200, 400, 403, 404, 405, \
      410, 413, 429, 500, 503; or set unreal: true
      do: {respond: {status: 99}}
      => 2:29: rules[0].do.respond.status: 99 is not a whole number from 200 to 599
      do: {respond: {status: 503, timestamp: 1h}}
      => 2:34: rules[0].do.respond.timestamp: a 503 has no timestamp, a 410 has one
      do: {respond: {status: 429, latch: true}}
      => 2:34: rules[0].do.respond.latch: it requires the reason TooManyProviderTokenUpdates
      do: {respond: {status: 410, timestamp: 24h ago}}
      => 2:45: rules[0].do.respond.timestamp: "24h ago" is not a time, times are written now, "-24h", \
      2026-01-31T12:00:00Z or {ago: 24h}
      do: {respond: {status: 503, reason: 503}}
      => 2:42: rules[0].do.respond.reason: 503 without quotation marks is a number to YAML, quote it: "503"
      do: {delay: 500ms}
      => 2:18: rules[0].do.delay: expected a map, not a duration, did you mean {fixed: 500ms}?
      do: {delay: {fixed: 30}}
      => 2:26: rules[0].do.delay.fixed: 30 has no unit, did you mean 30s?
      do: {delay: {}}
      => 2:18: rules[0].do.delay: a delay is one of fixed, uniform and lognormal, {fixed: 500ms}
      do: {delay: {uniform: {min: 2s, max: 1s}}}
      => 2:28: rules[0].do.delay.uniform: min is longer than max
      do: {delay: {lognormal: {median: 2s, sigma: 1, max: 1s}}}
      => 2:30: rules[0].do.delay.lognormal: median is longer than max
      do: {hang: {end_with: alert}}
      => 2:28: rules[0].do.hang.end_with: unknown value "alert", use one of nothing, reset_stream, close, \
      answer
      at: response, do: {lose_answer: {end_with: close}}
      => 2:49: rules[0].do.lose_answer.end_with: unknown value "close", use one of nothing, reset_stream
      do: {reset_stream: {code: INTERNAL_EROR}}
      => 2:32: rules[0].do.reset_stream.code: unknown value "INTERNAL_EROR", did you mean "INTERNAL_ERROR"?
      do: {reset_stream: {code: 99999999999}}
      => 2:32: rules[0].do.reset_stream.code: 99999999999 is not a whole number from 0 to 4294967295
      at: tls, do: {alert: {name: handshake}}
      => 2:34: rules[0].do.alert.name: unknown value "handshake", did you mean "handshake_failure"?
      at: tls, do: {certificate: {}}
      => 2:33: rules[0].do.certificate: use is missing
      do: {goaway: {close_after: soon}}
      => 2:33: rules[0].do.goaway.close_after: "soon" is not a duration, durations are written 500ms, 5s, 2m, \
      1h, 1h30m
      do: {goaway: {last_stream: first}}
      => 2:33: rules[0].do.goaway.last_stream: unknown value "first", use one of before_this, this, all
      at: connection, do: {drain: {}}
      => 2:34: rules[0].do.drain: for is missing
      at: response, do: {dribble: {chunks: 1, over: 1s}}
      => 2:43: rules[0].do.dribble.chunks: 1 is not a whole number from 2 to 1000
      at: settings, do: {settings: {initial_window_size: 2147483648}}
      => 2:57: rules[0].do.settings.initial_window_size: 2147483648 is not a whole number from 0 to 2147483647
      do: {respond: {status: 503}}, then: continue
      => 2:36: rules[0].then: respond determines the outcome of the push, so evaluation ends there, omit it
      do: {choose: [{delay: {fixed: 1s}}, {pass: }]}, then: continue
      => 2:54: rules[0].then: pass determines the outcome of the push, so evaluation ends there, omit it
      at: response, do: {choose: [{lose_answer: }, {split_body: }]}, then: forward
      => 2:69: rules[0].then: split_body is not performed on a push that is forwarded, use it with lose_answer
      name: No Name, do: {close: }
      => 2:12: rules[0].name: "No Name": a name is lower-case letters, digits and hyphens, at most 64, and no \
      hyphen in front, did you mean "no-name"?
      name: magic-4100, do: {close: }
      => 2:6: rules[0].name: names that begin with magic- are reserved for magic device tokens
      """))
  func rules(row: LintTable.Row) {
    let found = ProfileFixture.lint("rules:\n  - {\(row.text)}\n")
    #expect(found.count == 1)
    let isShortened = row.problem.hasSuffix(" one of") || row.problem.hasSuffix("unknown,")
    if isShortened {
      #expect(found.first?.hasPrefix("p.yaml:" + row.problem) == true)
    } else {
      #expect(found == ["p.yaml:" + row.problem])
    }
  }

  @Test func headerFieldsWithLineBreaks() {
    #expect(
      ProfileFixture.lint("rules:\n  - {do: {respond: {status: 503, headers: {x: \"a\\nb\"}}}}") == [
        "p.yaml:2:47: rules[0].do.respond.headers.x: not a valid value of a header field, at most 4096 bytes, and no line breaks"
      ])
  }

  @Test func allProblemsAreReportedTogether() {
    let text = """
      nam: x
      seed: many
      rules:
        - at: tsl
          when: {topc: x, device_token: 12}
          trigger: {probabilty: 1, first: none}
          do: {respond: {status: 17}, close: {}}
        - name: fine
          do: {pass: {}}
      """
    let found = ProfileLibrary().problems(in: ProfileFixture.source(text))
    #expect(
      found.map(\.path) == [
        "nam", "seed", "rules[0].at", "rules[0].when.topc", "rules[0].when.device_token",
        "rules[0].trigger.probabilty", "rules[0].trigger.first", "rules[0].do.respond.status", "rules[0].do.close",
      ])
    #expect(found.map(\.line) == [1, 2, 4, 5, 5, 6, 6, 7, 7])
  }

  /// Responses that the key `unreal` allows.
  @Test(arguments: [
    "status: 410, reason: BadDeviceToken", "status: 418, reason: Teapot", "status: 200, reason: Fine",
    "status: 400, reason: ",
    "status: 503, timestamp: 1h", "status: 400, reason: BadDeviceTokn",
  ])
  func unrealResponsesAreAllowed(fields: String) {
    #expect(ProfileFixture.lint("rules: [{do: {respond: {\(fields), unreal: true}}}]") == [])
  }

  @Test func problemsAsJSON() {
    let problem = ProfileProblem(
      .warning, file: "p.yaml", at: TextPosition(line: 3, column: 4), path: "rules[0]", "odd", hint: "look")
    #expect(
      ProfileFixture.json(problem.write)
        == #"{"severity":"warning","file":"p.yaml","line":3,"column":4,"path":"rules[0]","message":"odd","hint":"look"}"#
    )
    #expect(
      ProfileFixture.json(ProfileProblem(file: "p", "bad").write)
        == #"{"severity":"error","file":"p","line":null,"column":null,"path":"","message":"bad","hint":null}"#)
  }
}

/// Texts with the expected problems, as a table: one line with the text, in which \n is a line break, followed by one
/// line with the problem.
struct LintTable: Collection, Sendable {
  struct Row: Sendable, CustomTestStringConvertible {
    let text: String
    let problem: String

    var testDescription: String { text }
  }

  private let rows: [Row]

  init(_ table: String) {
    let lines = table.split(separator: "\n").map { $0.replacing("\\n", with: "\n") }
    rows = stride(from: 0, to: lines.count - 1, by: 2).map { index in
      Row(text: String(lines[index]), problem: String(lines[index + 1].dropFirst("=> ".count)))
    }
  }

  var startIndex: Int { rows.startIndex }
  var endIndex: Int { rows.endIndex }
  subscript(index: Int) -> Row { rows[index] }
  func index(after index: Int) -> Int { index + 1 }
}
