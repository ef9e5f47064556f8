import APNSMockFaultModel
import APNSMockFaults
import Testing

/// How often a rule fires for traffic that meets its condition. All times are given; no test waits.
@Suite struct EngineTriggerTests {
  /// One push: its arrival time, its properties, and whether the rule must fire.
  struct Step: Sendable {
    var at = 0.0
    var device = 0
    var topic = "com.acme.shop"
    var connection: UInt64 = 1
    var streams = 1
    var attempt = 1
    var fires: Bool

    /// Returns pushes at the same time, `x` for each that fires and `.` for each that does not.
    static func pushes(_ pattern: String, _ change: (inout Step) -> Void = { _ in }) -> [Step] {
      pattern.map { letter in
        var step = Step(fires: letter == "x")
        change(&step)
        return step
      }
    }
  }

  struct Row: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var trigger: Trigger
    var steps: [Step]

    init(_ name: String, _ trigger: Trigger, _ steps: [Step]...) {
      testDescription = name
      self.trigger = trigger
      self.steps = Array(steps.joined())
    }
  }

  static let counts = [
    Row("nothing", Trigger(), Step.pushes("xxxx")),
    Row("first", Trigger(first: 2), Step.pushes("xx...")),
    Row("after", Trigger(after: 2), Step.pushes("..xxx")),
    Row("after none", Trigger(after: 0), Step.pushes("xx")),
    Row("every", Trigger(every: 3), Step.pushes("..x..x..x.")),
    Row("every one", Trigger(every: 1), Step.pushes("xxx")),
    Row("times", Trigger(times: 2), Step.pushes("xx...")),
    Row("after and first", Trigger(first: 2, after: 3), Step.pushes("...xx...")),
    Row("after and every", Trigger(after: 1, every: 2), Step.pushes("..x.x.x")),
    Row("first and every", Trigger(first: 4, every: 2), Step.pushes(".x.x....")),
    Row("after, first and every", Trigger(first: 4, after: 2, every: 2), Step.pushes("...x.x....")),
    Row("every and times", Trigger(every: 2, times: 2), Step.pushes(".x.x....")),
    Row("after and times", Trigger(after: 2, times: 1), Step.pushes("..x....")),
    Row("first of nothing", Trigger(first: 0), Step.pushes("...")),
    Row("times of nothing", Trigger(times: 0), Step.pushes("...")),
    Row("largest numbers", Trigger(first: .max, after: 0, every: 1, times: .max), Step.pushes("xx")),
    Row("largest after", Trigger(after: .max), Step.pushes("..")),
  ]

  static let keys = [
    Row(
      "first per device", Trigger(first: 1, countKey: .deviceToken), Step.pushes("x.") { $0.device = 1 },
      Step.pushes("x.") { $0.device = 2 }, Step.pushes(".") { $0.device = 1 }),
    Row(
      "every per topic", Trigger(every: 2, countKey: .topic), Step.pushes(".") { $0.topic = "com.acme.a" },
      Step.pushes(".") { $0.topic = "com.acme.b" }, Step.pushes("x.x") { $0.topic = "com.acme.a" },
      Step.pushes("x") { $0.topic = "com.acme.b" }),
    Row(
      "every per connection", Trigger(every: 3, countKey: .connection), Step.pushes("..") { $0.connection = 1 },
      Step.pushes("..x") { $0.connection = 2 }, Step.pushes("x..x") { $0.connection = 1 }),
    Row(
      "after per connection", Trigger(after: 1, countKey: .connection), Step.pushes(".x") { $0.connection = 1 },
      Step.pushes(".x") { $0.connection = 2 }),
    Row(
      "times per device", Trigger(times: 1, countKey: .deviceToken), Step.pushes("x.") { $0.device = 1 },
      Step.pushes("x.") { $0.device = 2 }),
    Row(
      "first attempts of each push", Trigger(first: 2, countKey: .push),
      (1...4).flatMap { attempt in Step.pushes(attempt <= 2 ? "x" : ".") { $0.attempt = attempt } },
      Step.pushes("x") { $0.attempt = 1 }),
    Row(
      "after the first attempt", Trigger(after: 1, countKey: .push), Step.pushes(".") { $0.attempt = 1 },
      Step.pushes("xx") { $0.attempt = 2 }),
    Row(
      "times per push", Trigger(times: 1, countKey: .push), Step.pushes("x") { $0.device = 1 },
      Step.pushes(".") { ($0.device, $0.attempt) = (1, 2) }, Step.pushes("x") { $0.device = 2 }),
  ]

  static let times = [
    Row(
      "window", Trigger(window: .init(after: .seconds(30), length: .seconds(10))), Step.pushes(".") { $0.at = 29.999 },
      Step.pushes("xx") { $0.at = 30 }, Step.pushes("x") { $0.at = 39.999 }, Step.pushes(".") { $0.at = 40 },
      Step.pushes(".") { $0.at = 1e6 }),
    Row(
      "window from the beginning", Trigger(window: .init(length: .seconds(10))), Step.pushes("x") { $0.at = 0 },
      Step.pushes(".") { $0.at = 10 }),
    Row(
      "window without an end", Trigger(window: .init(after: .seconds(5))), Step.pushes(".") { $0.at = 4 },
      Step.pushes("x") { $0.at = 1e6 }),
    Row(
      "blips", Trigger(window: .init(length: .seconds(5), every: .seconds(60))), Step.pushes(".") { $0.at = 0 },
      Step.pushes(".") { $0.at = 59 }, Step.pushes("x") { $0.at = 60 }, Step.pushes(".") { $0.at = 65 },
      Step.pushes("x") { $0.at = 120 }, Step.pushes("x") { $0.at = 6004 }, Step.pushes(".") { $0.at = 6005 }),
    Row(
      "blips from a time", Trigger(window: .init(after: .seconds(10), length: .seconds(5), every: .seconds(60))),
      Step.pushes(".") { $0.at = 9 }, Step.pushes("x") { $0.at = 10 }, Step.pushes(".") { $0.at = 60 },
      Step.pushes("x") { $0.at = 70 }),
    Row(
      "counts only in the window", Trigger(first: 1, window: .init(after: .seconds(10), length: .seconds(10))),
      Step.pushes("...") { $0.at = 5 }, Step.pushes("x.") { $0.at = 10 }),
    Row(
      "ramp from 0 to 1", Trigger(probability: .ramp(from: 0, to: 1, over: .seconds(60))),
      Step.pushes("..") { $0.at = 0 }, Step.pushes("xx") { $0.at = 60 }, Step.pushes("x") { $0.at = 1e6 }),
    Row(
      "ramp from 1 to 0", Trigger(probability: .ramp(from: 1, to: 0, over: .seconds(60))),
      Step.pushes("xx") { $0.at = 0 }, Step.pushes(".") { $0.at = 60 }),
    Row(
      "ramp in no time", Trigger(probability: .ramp(from: 0, to: 1, over: .zero)), Step.pushes("x") { $0.at = 0 }),
    Row(
      "streams", Trigger(afterStreams: 3), Step.pushes(".") { $0.streams = 2 }, Step.pushes("x") { $0.streams = 3 },
      Step.pushes("x") { $0.streams = 9 }),
    Row(
      "streams, then count", Trigger(first: 1, afterStreams: 3), Step.pushes("..") { $0.streams = 2 },
      Step.pushes("x.") { $0.streams = 3 }),
  ]

  static func rate(_ limit: Double, per: Duration = .seconds(1), burst: Double, _ key: Trigger.Key = .rule) -> Trigger {
    Trigger(overLimit: .init(limit: limit, per: per, burst: burst, key: key))
  }

  static let rates = [
    Row("a burst", rate(5, burst: 3), Step.pushes("...xx"), Step.pushes(".x") { $0.at = 0.2 }),
    Row(
      "refills to the burst and no further", rate(5, burst: 2), Step.pushes("..x"), Step.pushes("..x") { $0.at = 60 }),
    Row(
      "what is over takes nothing", rate(1, burst: 1), Step.pushes(".xxxx"), Step.pushes("x") { $0.at = 0.999 },
      Step.pushes(".x") { $0.at = 1 }),
    Row(
      "a third of a second", rate(3, burst: 1), Step.pushes("."), Step.pushes("x") { $0.at = 0.3333 },
      Step.pushes(".") { $0.at = 0.3334 }),
    Row(
      "per minute", rate(2, per: .seconds(60), burst: 1), Step.pushes(".x"), Step.pushes(".x") { $0.at = 30 }),
    Row(
      "per device", rate(1, burst: 1, .deviceToken), Step.pushes(".x") { $0.device = 1 },
      Step.pushes(".x") { $0.device = 2 }),
    Row(
      "per connection", rate(1, burst: 1, .connection), Step.pushes(".x") { $0.connection = 1 },
      Step.pushes(".x") { $0.connection = 2 }),
    Row(
      "per client, whatever the connection", rate(1, burst: 1, .client), Step.pushes(".x") { $0.connection = 1 },
      Step.pushes("x") { $0.connection = 2 }),
    Row(
      "more than can be", rate(1e-300, per: .seconds(1), burst: 1), Step.pushes(".x"),
      Step.pushes("x") { $0.at = 1e9 }),
  ]

  static let combined = [
    Row(
      "over the limit after the first two",
      Trigger(after: 2, overLimit: .init(limit: 1, per: .seconds(1), burst: 1, key: .rule)),
      Step.pushes("...xx")),
    Row(
      "once over the limit", Trigger(times: 1, overLimit: .init(limit: 1, per: .seconds(1), burst: 1, key: .rule)),
      Step.pushes(".x...")),
    Row("never likely", Trigger(probability: .fixed(0), first: 3), Step.pushes("...")),
    Row("always likely", Trigger(probability: .fixed(1), first: 2), Step.pushes("xx.")),
    Row(
      "counts what is unlikely", Trigger(probability: .ramp(from: 0, to: 1, over: .seconds(1)), first: 3),
      Step.pushes("..") { $0.at = 0 }, Step.pushes("x.") { $0.at = 1 }),
    Row(
      "times counts injections alone", Trigger(probability: .ramp(from: 0, to: 1, over: .seconds(1)), times: 2),
      Step.pushes("...") { $0.at = 0 }, Step.pushes("xx.") { $0.at = 1 }),
    Row(
      "window and rate",
      Trigger(
        overLimit: .init(limit: 1, per: .seconds(100), burst: 1, key: .rule), window: .init(after: .seconds(10))),
      Step.pushes("...") { $0.at = 0 }, Step.pushes(".xx") { $0.at = 10 }),
  ]

  @Test(arguments: counts + keys + times + rates + combined)
  func fires(_ row: Row) {
    let plan = FaultPlan([.unavailable(trigger: row.trigger)])
    for (number, step) in row.steps.enumerated() {
      let fixture = EngineFixture {
        $0.deviceToken = EngineFixture.deviceToken(step.device)
        $0.fields[0].1 = step.topic
        $0.attempt = step.attempt
        $0.connection.number = step.connection
        $0.connection.streamsOpened = step.streams
      }
      #expect(plan.fires(fixture, now: .seconds(step.at)) == step.fires, "step \(number)")
    }
  }

  /// A push that does not meet the condition is not counted.
  @Test func countsWhatMatches() {
    let plan = FaultPlan([
      .unavailable(when: [Condition.Test(.topic, .equals("com.acme.a"))], trigger: Trigger(every: 2))
    ])
    let fired = ["a", "b", "b", "a", "b", "a", "a"].map { app in
      plan.fires(EngineFixture { $0.fields[0].1 = "com.acme.\(app)" })
    }
    #expect(fired == [false, false, false, true, false, false, true])
  }

  /// Counted by `apns-id` if the profile says so, and by content if the client sent none.
  @Test(
    arguments: [
      (.content, ["1", "2", nil, nil], [true, false, false, false]),
      (.apnsID, ["1", "2", "1", "2"], [true, true, false, false]), (.apnsID, [nil, nil, "1"], [true, false, true]),
    ] as [(Profile.PushIdentity, [String?], [Bool])])
  func identity(_ identity: Profile.PushIdentity, ids: [String?], fires: [Bool]) {
    let plan = FaultPlan([.unavailable(trigger: Trigger(times: 1, countKey: .push))], pushIdentity: identity)
    let fired = ids.map { id in
      plan.fires(
        EngineFixture { if let id { $0.fields.append(("apns-id", "1234567\(id)-90ab-cdef-1234-567890ABCDEF")) } })
    }
    #expect(fired == fires)
  }
}
