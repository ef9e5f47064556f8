import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults

/// Errors and warnings about conditions.
@Suite struct ProfileLintConditionTests {
  @Test(
    arguments: LintTable(
      """
      device_token: 0410
      => 27: rules[0].when.device_token: 0410 without quotation marks is a number to YAML, quote device \
      tokens: "0410"
      device_token: 12345678
      => 27: rules[0].when.device_token: 12345678 without quotation marks is a number to YAML, quote device \
      tokens: "12345678"
      device_token: 1e500
      => 27: rules[0].when.device_token: 1e500 without quotation marks is a number to YAML, quote device \
      tokens: "1e500"
      device_token: {prefix: 12}
      => 36: rules[0].when.device_token.prefix: 12 without quotation marks is a number to YAML, quote device \
      tokens: "12"
      device_token: {in: ['aa', 12]}
      => 39: rules[0].when.device_token.in[1]: 12 without quotation marks is a number to YAML, quote device \
      tokens: "12"
      collapse_id: 12:30
      => 26: rules[0].when.collapse_id: 12:30 without quotation marks is a number to YAML, quote collapse ids: \
      "12:30"
      address: 10.0.0.0/33
      => 22: rules[0].when.address: "10.0.0.0/33" has no valid prefix length, use a number from 0 to 32
      address: 'fd00::/129'
      => 22: rules[0].when.address: "fd00::/129" has no valid prefix length, use a number from 0 to 128
      address: 10.1.2.3/8
      => 22: rules[0].when.address: "10.1.2.3/8" has bits set after its prefix, write the first address of the \
      block, as in 10.0.0.0/8
      address: {in: [127.0.0.1, localhost]}
      => 39: rules[0].when.address.in[1]: "localhost" is not an IP address or CIDR block, write 192.0.2.7, \
      10.0.0.0/8, "fd00::/8" or, outside of lists, a pattern such as "10.0.*"
      address: {in: []}
      => 27: rules[0].when.address.in: an empty list: this can never match
      environment: prod
      => 26: rules[0].when.environment: "prod" can never match, did you mean "production"?
      kind: {in: [push, chanel]}
      => 31: rules[0].when.kind.in[1]: "chanel" can never match, did you mean "channel"?
      q: kind:broadcasts
      => 16: rules[0].when.q: kind cannot be "broadcasts" (column 1 of the query: kind:broadcasts), Did you mean broadcast? Use one of push, broadcast, channel.
      idle: {gt: 10m}
      => 13: rules[0].when.idle: not available at request, use at: connection
      topic: yes
      => 20: rules[0].when.topic: yes without quotation marks is true or false to YAML, quote it: "yes"
      topic: 2026-01-31
      => 20: rules[0].when.topic: 2026-01-31 without quotation marks is a time to YAML, quote it: "2026-01-31"
      topic: ~
      => 20: rules[0].when.topic: a string is missing
      payload: {/a: 0410}
      => 27: rules[0].when.payload./a: 0410 without quotation marks is a number to YAML, quote it: "0410"
      payload: {aps.alert: x}
      => 23: rules[0].when.payload.aps.alert: not a JSON pointer, did you mean "/aps/alert"?
      payload: {/a~2: x}
      => 23: rules[0].when.payload./a~2: not a JSON pointer, ~ is written ~0 and / in a name ~1
      header: {a b: x}
      => 22: rules[0].when.header.a b: "a b" is not a valid name of a header field
      push_type: [alert]
      => 24: rules[0].when.push_type: expected a value, not a list, write {in: […]}
      push_type: {in: []}
      => 29: rules[0].when.push_type.in: an empty list: this can never match
      push_type: alrt
      => 24: rules[0].when.push_type: "alrt" can never match: APNs rejects it before this rule is evaluated, \
      did you mean "alert"?
      priority: 7
      => 23: rules[0].when.priority: "7" can never match: APNs rejects it before this rule is evaluated, \
      priorities are 10, 5 and 1
      priority: high
      => 23: rules[0].when.priority: high is not a whole number from 0 to 255
      device_token: 'xyz'
      => 27: rules[0].when.device_token: "xyz" can never match: APNs rejects it before this rule is evaluated, \
      device tokens are hexadecimal digits
      attempt: {gt: 3, lt: 4}
      => 22: rules[0].when.attempt: these bounds contain no value: this can never match
      attempt: {lt: 1}
      => 22: rules[0].when.attempt: these bounds contain no value: this can never match
      attempt: {prefix: '1'}
      => 23: rules[0].when.attempt.prefix: prefix cannot be used here, equals, in, present, gt or lt can
      topic: {gt: 3}
      => 21: rules[0].when.topic.gt: gt cannot be used here, equals, prefix, glob, in or present can
      topic: {}
      => 20: rules[0].when.topic: the requirement is missing, one of equals, prefix, glob, in, present
      topic: {prefix: a, glob: b*}
      => 32: rules[0].when.topic.glob: prefix is already specified, keep one of them; write a second test of \
      the same value under not, or in another rule
      topic: {present: maybe}
      => 30: rules[0].when.topic.present: maybe is neither true nor false
      size: {gt: big}
      => 24: rules[0].when.size.gt: big is not a number of bytes, sizes are written 4096 or 4K
      jwt: {age: 30m}
      => 24: rules[0].when.jwt.age: an age cannot be compared with an exact value, write {gt: 30m} or {lt: 30m}
      jwt: {age: {gt: 30}}
      => 29: rules[0].when.jwt.age.gt: 30 has no unit, did you mean 30s?
      status: 503
      => 13: rules[0].when.status: not available at request, use at: response
      topic: a, not: {topic: a}
      => 6: rules[0].when.not: this can never match: `not` excludes all that `when` matches
      topic: a, not: [{}]
      => 29: rules[0].when.not[0]: an empty not excludes everything, omit it, or add a condition
      """))
  func conditions(row: LintTable.Row) {
    #expect(ProfileFixture.lint("rules:\n  - {when: {\(row.text)}, do: {close: {}}}\n") == ["p.yaml:2:" + row.problem])
  }

  @Test(
    arguments: LintTable(
      """
      rules: [{do: {respond: {status: 400, reason: BadDeviceTokn}}}]
      => 1:38: warning: rules[0].do.respond.reason: unknown reason "BadDeviceTokn", did you \
      mean "BadDeviceToken"?
      rules: [{at: response, when: {reason: Unknown}, do: {split_body: }}]
      => 1:39: warning: rules[0].when.reason: unknown reason "Unknown"
      rules: [{stage: before_validation, when: {push_type: foo}, do: {close: }}]
      => 1:54: warning: rules[0].when.push_type: not a value that APNs accepts: "foo", the push types are alert, background, \
      complication, controls, fileprovider, liveactivity, location, mdm, pushtotalk, voip, widgets
      rules: [{at: tls, stage: before_validation, do: {stall: }}]
      => 1:19: warning: rules[0].stage: there is no validation at tls
      rules: [{trigger: {draw_per: push}, do: {close: }}]
      => 1:20: warning: rules[0].trigger.draw_per: it has no effect without a probability, omit it, or \
      add a probability
      rules: [{trigger: {times_per: push}, do: {close: }}]
      => 1:20: warning: rules[0].trigger.times_per: it has no effect without a count, it belongs to first, after, \
      every and times
      rules: [{trigger: {probability: 0}, do: {close: }}]
      => 1:20: warning: rules[0].trigger.probability: this never fires
      rules: [{trigger: {max_active: 5}, do: {close: }}]
      => 1:10: warning: rules[0].trigger.max_active: no push is delayed here, use it with delay or hang
      rules: [{trigger: {window: {every: 5s, for: 5s}}, do: {close: }}]
      => 1:28: warning: rules[0].trigger.window: for is not shorter than every, so the window never closes
      rules: [{when: {jwt: {age: {gt: 2h}}}, do: {close: }}]
      => 1:9: warning: rules[0].when.jwt.age: this never fires: provider tokens older than 1h are rejected \
      before, raise apns: {token_max_age: …}, or use stage: before_validation
      rules: [{at: settings, do: {settings: {after: 1s}}}]
      => 1:39: warning: rules[0].do.settings: SETTINGS without a setting have no effect
      rules: [{do: {hang: {for: 11m}}}]
      => 1:9: warning: rules[0].do: a push is delayed at most 10m, raise limits: {max_hold: …}
      limits: {max_hold: 1s}\\nrules: [{do: {choose: [{close: }, {delay: {uniform: {min: 0s, max: 2s}}}]}}]
      => 2:9: warning: rules[0].do: a push is delayed at most 1s, raise limits: {max_hold: …}
      params: {x: {type: int, default: 1}}
      => 1:10: warning: params.x: this parameter is not used, use it as "${x}"
      """))
  func warnings(row: LintTable.Row) throws {
    #expect(ProfileFixture.lint(row.text) == ["p.yaml:" + row.problem])
    _ = try ProfileFixture.profile(row.text)
  }

  /// The first rule, the second rule, and whether the second can never be evaluated.
  @Test(
    arguments: [
      ("do: {close: }", "do: {close: }", true),
      ("do: {close: }", "when: {topic: x}, do: {close: }", true),
      ("when: {topic: x}, do: {close: }", "do: {close: }", false),
      ("when: {topic: x}, do: {close: }", "when: {topic: x, push_type: alert}, do: {close: }", true),
      ("when: {topic: x}, do: {close: }", "when: {topic: z}, do: {close: }", false),
      ("when: {topic: {prefix: com.}}, do: {close: }", "when: {topic: com.acme}, do: {close: }", true),
      ("when: {topic: {prefix: com.}}, do: {close: }", "when: {topic: {prefix: com.acme}}, do: {close: }", true),
      ("when: {topic: {glob: '*.voip'}}, do: {close: }", "when: {topic: {in: [a.voip, b.voip]}}, do: {close: }", true),
      ("when: {topic: {glob: '*.voip'}}, do: {close: }", "when: {topic: {in: [a.voip, b]}}, do: {close: }", false),
      ("when: {topic: {present: true}}, do: {close: }", "when: {topic: {glob: 'a*'}}, do: {close: }", true),
      ("when: {topic: {present: false}}, do: {close: }", "when: {topic: x}, do: {close: }", false),
      ("when: {attempt: {gt: 2}}, do: {close: }", "when: {attempt: {gt: 3, lt: 9}}, do: {close: }", true),
      ("when: {attempt: {gt: 2}}, do: {close: }", "when: {attempt: 3}, do: {close: }", true),
      ("when: {attempt: {gt: 2, lt: 5}}, do: {close: }", "when: {attempt: {gt: 3}}, do: {close: }", false),
      ("when: {not: {topic: x}}, do: {close: }", "when: {topic: z}, do: {close: }", false),
      ("when: {not: {topic: x}}, do: {close: }", "when: {topic: z, not: {topic: x}}, do: {close: }", true),
      ("trigger: {probability: 1}, do: {close: }", "do: {close: }", true),
      ("trigger: {probability: 0.9}, do: {close: }", "do: {close: }", false),
      ("trigger: {first: 3}, do: {close: }", "do: {close: }", false),
      ("trigger: {window: {after: 1s}}, do: {close: }", "do: {close: }", false),
      ("do: {delay: {fixed: 1s}}", "do: {close: }", false),
      ("do: {delay: {fixed: 1s}}, then: stop", "do: {close: }", true),
      ("do: {choose: [{close: }, {pass: }]}", "do: {close: }", true),
      ("do: {choose: [{close: }, {delay: {fixed: 1s}}]}", "do: {close: }", false),
      ("do: {sequence: {steps: [{close: }]}}", "do: {close: }", true),
      ("do: {sequence: {steps: [{close: }], on_end: pass}}", "do: {close: }", false),
      ("do: {close: }", "stage: before_validation, do: {close: }", false),
      ("stage: before_validation, do: {close: }", "do: {close: }", true),
      ("do: {close: }", "at: response, do: {close: }", false),
      ("at: connection, do: {close: }", "at: connection, do: {close: }", false),
    ])
  func shadows(first: String, second: String, isShadowed: Bool) {
    let found = ProfileFixture.lint("rules:\n  - {\(first)}\n  - {\(second)}\n")
    let warning =
      "p.yaml:3:5: warning: rules[1]: never evaluated: \"rule-1\" in line 2 matches everything before it, "
      + "move it up, or add a when to the other rule"
    #expect(found == (isShadowed ? [warning] : []))
  }
}
