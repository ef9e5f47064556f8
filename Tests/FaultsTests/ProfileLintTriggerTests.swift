import APNSMockNotation
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults

/// Errors in triggers and parameters.
@Suite struct ProfileLintTriggerTests {
  @Test(
    arguments: LintTable(
      """
      trigger: {probability: 20}
      => 2:29: rules[0].trigger.probability: 20 is not a number in 0..1, did you mean 0.2?
      trigger: {probability: 5%}
      => 2:29: rules[0].trigger.probability: 5% is not a number in 0..1, did you mean 0.05, without the percent sign?
      trigger: {probability: -1}
      => 2:29: rules[0].trigger.probability: -1 is not a number in 0..1
      trigger: {probability: .5}
      => 2:29: rules[0].trigger.probability: .5 is not a number in 0..1, did you mean 0.5?
      trigger: {probability: .nan}
      => 2:29: rules[0].trigger.probability: .nan is not a number in 0..1
      trigger: {probability: '0.5'}
      => 2:29: rules[0].trigger.probability: 0.5 is not a number in 0..1, remove the quotation marks
      trigger: {probability: [1]}
      => 2:29: rules[0].trigger.probability: expected a probability, not a list
      trigger: {probability: }
      => 2:29: rules[0].trigger.probability: a probability is missing
      trigger: {probability: {ramp: {from: 0, to: 2, over: 1s}}}
      => 2:50: rules[0].trigger.probability.ramp.to: 2 is not a number in 0..1, did you mean 0.02?
      trigger: {probability: {ramp: {to: 1}}}
      => 2:36: rules[0].trigger.probability.ramp: over is missing
      trigger: {first: 0}
      => 2:23: rules[0].trigger.first: 0 is not a whole number from 1
      trigger: {first: 1.5}
      => 2:23: rules[0].trigger.first: 1.5 is not a whole number from 1, did you mean 2?
      trigger: {first: '2'}
      => 2:23: rules[0].trigger.first: "2" is a string, expected a whole number, remove the quotation marks
      trigger: {first: 010}
      => 2:23: rules[0].trigger.first: 010 is not a whole number from 1, YAML 1.1 parsers read the leading 0 \
      as octal, 8
      trigger: {every: 99999999999999999999}
      => 2:23: rules[0].trigger.every: 99999999999999999999 is not a whole number from 1 to 2147483647
      trigger: {first: 2, every: 3}
      => 2:26: rules[0].trigger.every: 3 is more than first, 2: this never fires, every must be at most first
      trigger: {first: 1, times_per: attempt}
      => 2:37: rules[0].trigger.times_per: an attempt is unique, so it cannot be counted, did you \
      mean "push"?
      trigger: {first: 1, times_per: tokn}
      => 2:37: rules[0].trigger.times_per: unknown value "tokn", use one of rule, push, device_token, \
      topic, connection, client
      trigger: {over_limit: {per: 1s}}
      => 2:28: rules[0].trigger.over_limit: limit is missing
      trigger: {over_limit: {limit: 0}}
      => 2:36: rules[0].trigger.over_limit.limit: 0 is not a number above 0
      trigger: {over_limit: {limit: 1, burst: 0.5}}
      => 2:46: rules[0].trigger.over_limit.burst: 0.5 is not a number from 1
      trigger: {window: {}}
      => 2:24: rules[0].trigger.window: a window needs after, for or every, {after: 30s, for: 10s} or \
      {every: 60s, for: 5s}
      trigger: {window: {every: 5s}}
      => 2:24: rules[0].trigger.window: a repeated window must close, specify how long it stays \
      open: for: 5s
      trigger: {window: {after: 5}}
      => 2:32: rules[0].trigger.window.after: 5 has no unit, did you mean 5s?
      trigger: {window: {for: 12:30}}
      => 2:30: rules[0].trigger.window.for: "12:30" is not a duration, durations are written 500ms, 5s, 2m, \
      1h, 1h30m
      trigger: {window: {for: 0s}}
      => 2:30: rules[0].trigger.window.for: 0s is not longer than zero
      trigger: {window: {for: 99999999999999999999d}}
      => 2:30: rules[0].trigger.window.for: "99999999999999999999d" is not a duration, durations are written \
      500ms, 5s, 2m, 1h, 1h30m
      at: tls, trigger: {after_streams: 5}, do: {stall: {}}
      => 2:25: rules[0].trigger.after_streams: no stream can be open at tls, use at: connection, request or \
      response
      at: tls, trigger: {probability: 0.5, draw_per: topic}, do: {stall: {}}
      => 2:53: rules[0].trigger.draw_per: there is no push at tls, use rule, attempt, connection or \
      client
      at: connection, trigger: {over_limit: {limit: 5}}
      => 2:32: rules[0].trigger.over_limit: over_limit counts pushes or new connections only, use at: \
      accept, tls, request or response
      when: {attempt: 3}, trigger: {first: 2, times_per: push}
      => 2:26: rules[0].trigger: this never fires: `when` allows attempts 3 alone, the trigger allows 1 to 2, \
      times_per: push counts attempts
      """))
  func triggers(row: LintTable.Row) {
    let fields = row.text.contains("do:") ? row.text : row.text + ", do: {close: {}}"
    #expect(ProfileFixture.lint("rules:\n  - {\(fields)}\n") == ["p.yaml:" + row.problem])
  }

  @Test(
    arguments: LintTable(
      """
      type: whole, default: 5
      => 1:20: params.x.type: unknown value "whole", use one of int, probability, duration, string, bool
      default: 5
      => 1:10: params.x: type is missing, {type: int, default: 5}
      type: int
      => 1:10: params.x: default is missing
      type: int, default: five
      => 1:34: params.x.default: five is not a whole number
      type: int, default: 5, max: 3
      => 1:34: params.x.default: 5 is more than 3
      type: int, default: 5, min: 9, max: 7
      => 1:50: params.x.max: 7 is less than 9
      type: int, default: 5, min: low
      => 1:42: params.x.min: low is not a whole number
      type: duration, default: 5
      => 1:39: params.x.default: 5 is not a duration, did you mean 5s?
      type: probability, default: 50
      => 1:42: params.x.default: 50 is not a number in 0..1: did you mean 0.5?
      type: string, default: no
      => 1:37: params.x.default: no without quotation marks is true or false to YAML, quote it: "no"
      type: bool, default: maybe
      => 1:35: params.x.default: maybe is neither true nor false
      type: string, default: a, min: b
      => 1:45: params.x.min: a string has neither min nor max
      type: int, default: '${y}'
      => 1:34: params.x.default: a parameter cannot be part of another one
      type: int, default: [5]
      => 1:34: params.x.default: expected a single value, not a list
      """))
  func parameterDeclarations(row: LintTable.Row) {
    let text = "params: {x: {\(row.text)}}\nrules: [{trigger: {first: \"${x}\"}, do: {close: }}]"
    #expect(ProfileFixture.lint(text).first == "p.yaml:" + row.problem)
  }

  @Test(
    arguments: LintTable(
      """
      probability: '${rte}'
      => 2:28: rules[0].trigger.probability: unknown parameter "rte", did you mean "${rate}"?
      probability: '${zzzzz}'
      => 2:28: rules[0].trigger.probability: unknown parameter "zzzzz", the parameters are rate, hold, words
      probability: '${hold}'
      => 2:28: rules[0].trigger.probability: the parameter "hold" is of type duration, expected a \
      probability, make its type probability
      first: '${rate}'
      => 2:22: rules[0].trigger.first: the parameter "rate" is of type probability, expected a whole number, \
      make its type int
      window: {for: '${hold}s'}
      => 2:29: rules[0].trigger.window.for: "${hold}s": a parameter must be the whole value, "${name}", not a part of \
      it, move the whole value into the parameter
      window: {for: '${hold}'}
      => 2:29: rules[0].trigger.window.for: 0s is not longer than zero (parameter "hold")
      draw_per: '${words}', probability: 1
      => 2:25: rules[0].trigger.draw_per: unknown value "nobody" (parameter "words"), use one of rule, \
      attempt, push, device_token, topic, connection, client
      """))
  func parameterUses(row: LintTable.Row) {
    let text = """
      rules:
        - trigger: {\(row.text)}
          do: {delay: {fixed: "${hold}"}}
        - when: {topic: "${words}"}
          trigger: {probability: "${rate}"}
          do: {close: {}}
      params:
        rate: {type: probability, default: 0.5}
        hold: {type: duration, default: 0s}
        words: {type: string, default: nobody}
      """
    #expect(ProfileFixture.lint(text) == ["p.yaml:" + row.problem])
  }

  @Test(arguments: [
    ("rate", "20", "p: params.rate: 20 is not a number in 0..1: did you mean 0.2?"),
    ("rate", "30%", "p: params.rate: 30% is not a number in 0..1: did you mean 0.3, without the percent sign?"),
    ("count", "3%", "p: params.count: 3% is not a whole number: remove the percent sign"),
    ("rate", "", "p: params.rate:  is not a number in 0..1"),
    ("count", "11", "p: params.count: 11 is more than 10"), ("count", "0", "p: params.count: 0 is less than 1"),
    ("count", "1.5", "p: params.count: 1.5 is not a whole number"),
    ("hold", "5", "p: params.hold: 5 is not a duration, did you mean 5s?"),
    ("cuont", "5", #"p: params.cuont: unknown parameter, did you mean "count"?"#),
  ])
  func parameterValues(name: String, value: String, problem: String) {
    let text = """
      params:
        rate: {type: probability, default: 0.5}
        count: {type: int, default: 5, min: 1, max: 10}
        hold: {type: duration, default: 1s}
      rules:
        - {trigger: {probability: "${rate}", first: "${count}"}, do: {delay: {fixed: "${hold}"}}}
      """
    let failure = #expect(throws: ProfileFailure.self) { try ProfileFixture.profile(text, [name: value]) }
    #expect(failure?.problems.map(\.description) == [problem])
    #expect(failure?.kind == .faulty)
  }
}
