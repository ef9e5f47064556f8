internal import APNSMockFaultModel
internal import APNSMockNotation

extension Trigger {
  /// The schema of `trigger`.
  static let schema: MapSchema<Trigger> = MapSchema(
    "trigger", Trigger(),
    .optional(
      "probability", \.probability, .probability, default: "1",
      "The probability of firing: constant, or changing over time."),
    .defaulted(
      "draw_per", \.drawKey, .drawKey, writing: .unlessDefault,
      "What has its own random draw: with `attempt` each attempt, otherwise pushes with the same value share one draw."),
    .optional(
      "first", \.first, .count(from: 1), "Fires only for the first n pushes, counted after those that `after` skips."),
    .optional("after", \.after, .count(from: 0), "Skips the first n pushes."),
    .optional("every", \.every, .count(from: 1), "Fires for every n-th push, counted after those that `after` skips."),
    .optional("times", \.times, .count(from: 1), "The maximum number of times the rule fires."),
    .defaulted(
      "times_per", \.countKey, .countKey, writing: .unlessDefault,
      "What `first`, `after`, `every` and `times` count separately for; with `push`, they count its attempts."),
    .optional("over_limit", \.overLimit, .rate, "Fires only for pushes, or new connections, above a rate."),
    .optional("window", \.window, .window, "Fires only while a time window is open."),
    .optional(
      "after_streams", \.afterStreams, .count(from: 1), "Fires only after n streams were opened on the connection."),
    .optional(
      "max_active", \.maxActive, .count(from: 1), "The maximum number of pushes that the rule delays at the same time.")
  ) { map, trigger in trigger.check(map) }

  private func check(_ map: CheckedMap<Trigger>) -> Bool {
    if map.has(\.drawKey), !map.has(\.probability) {
      map.warn(at: \.drawKey, "it has no effect without a probability", hint: "omit it, or add a probability")
    }
    if map.has(\.countKey), first == nil, after == nil, every == nil, times == nil {
      map.warn(
        at: \.countKey, "it has no effect without a count", hint: "it belongs to first, after, every and times")
    }
    if case .fixed(0) = probability, map.parser.parameterName(map[\.probability]) == nil {
      map.warn(at: \.probability, "this never fires")
    }
    var isValid = true
    if let first, let every, every > first {
      isValid = map.fail(
        at: \.every, "\(every) is more than first, \(first): this never fires", hint: "every must be at most first")
    }
    guard let point = map.parser.injectionPoint else { return isValid }
    if afterStreams != nil, point.isBeforeStreams {
      isValid = map.fail(
        at: \.afterStreams, "no stream can be open at \(point.rawValue)",
        hint: "use at: connection, request or response")
    }
    if overLimit != nil, !point.hasPush, point != .accept, point != .tls {
      isValid = map.fail(
        at: \.overLimit, "over_limit counts pushes or new connections only",
        hint: "use at: accept, tls, request or response")
    }
    return isValid
  }
}

extension Schema<Trigger.Probability> {
  private static let ramp = MapSchema(
    "ramp", (from: 0.0, to: 0.0, over: Duration.zero),
    .defaulted("from", \.from, .probability, "The probability at activation."),
    .required("to", \.to, .probability, "The probability at the end, and afterwards."),
    .required("over", \.over, .positiveDuration, "The duration of the change."))

  private static let changing = Schema.map(
    MapSchema(
      "probability", (from: 0.0, to: 0.0, over: Duration.zero),
      .required("ramp", \.self, .map(ramp), "A linear change of the probability after activation.")),
    make: { .ramp(from: $0.from, to: $0.to, over: $0.over) },
    values: { if case .ramp(let from, let to, let over) = $0 { (from, to, over) } else { nil } })

  /// A number, or a map with `ramp`.
  fileprivate static let probability = Schema(
    form: .either(Schema<Double>.probability.form, changing.form),
    parse: { parser, node in
      if case .map = node.content { return changing.parse(parser, node) }
      return parser.parseProbability(node).map(Trigger.Probability.fixed)
    },
    write: { probability, writer in
      if case .fixed(let number) = probability {
        Schema<Double>.probability.write(number, &writer)
      } else {
        changing.write(probability, &writer)
      }
    })
}

extension Schema<Trigger.Key> {
  /// The key of a draw.
  fileprivate static let drawKey = key(Trigger.Key.allCases)

  /// A key that can be counted by: not an attempt, which occurs only once.
  static let countKey = {
    let key = key(Trigger.Key.allCases.filter { $0 != .attempt })
    return Schema(
      form: key.form,
      parse: { parser, node in
        if case .scalar(let scalar) = node.content, scalar.text == Trigger.Key.attempt.rawValue {
          parser.fail(node, "an attempt is unique, so it cannot be counted", hint: "did you mean \"push\"?")
          return nil
        }
        return key.parse(parser, node)
      }, write: key.write)
  }()

  private static func key(_ allowed: [Trigger.Key]) -> Schema {
    let word = word(allowed)
    return Schema(
      form: word.form,
      parse: { parser, node in
        guard let key = word.parse(parser, node) else { return nil }
        if let point = parser.injectionPoint, !point.hasPush, !key.isKnownWithoutPush {
          parser.fail(
            node, "there is no push at \(point.rawValue)",
            hint: "use \(allowed.filter(\.isKnownWithoutPush).map(\.rawValue).joinedWithOr)")
          return nil
        }
        return key
      }, write: word.write)
  }
}

extension Trigger.Key {
  /// Whether the key is known without a push. Without a push, the attempt is an opening of the window.
  var isKnownWithoutPush: Bool {
    switch self {
    case .rule, .attempt, .connection, .client: true
    case .push, .deviceToken, .topic: false
    }
  }
}

extension Schema<Trigger.Rate> {
  fileprivate static let rate = Schema.map(
    MapSchema(
      "rate", (limit: 0.0, per: Duration.seconds(1), burst: Double?.none, key: Trigger.Key.rule),
      .required("limit", \.limit, .number(.above(0)), "The allowed number of pushes or connections in the period."),
      .defaulted("per", \.per, .positiveDuration, "The period."),
      .optional("burst", \.burst, .number(.from(1)), default: "`limit`, at least 1", "How many may arrive at once."),
      .defaulted("key", \.key, .countKey, "What has its own rate.")),
    make: { Trigger.Rate(limit: $0.limit, per: $0.per, burst: $0.burst ?? max(1, $0.limit), key: $0.key) },
    values: { ($0.limit, $0.per, $0.burst, $0.key) })
}

extension Schema<Trigger.Window> {
  fileprivate static let window = Schema.map(
    MapSchema(
      "window", Trigger.Window(),
      .defaulted(
        "after", \.after, .duration,
        writing: .when { $0.after > .zero || $0.length == nil && $0.every == nil },
        "The time from activation until the window opens; with `every`, at first after `every` if it is zero."),
      .optional("for", \.length, .positiveDuration, default: "no end", "How long the window stays open."),
      .optional("every", \.every, .positiveDuration, default: "once", "The period after which the window opens again.")
    ) { map, window in
      if map.isEmpty {
        map.parser.fail(
          map.node, "a window needs after, for or every", hint: "{after: 30s, for: 10s} or {every: 60s, for: 5s}")
        return false
      }
      guard let every = window.every else { return true }
      guard let length = window.length else {
        map.parser.fail(map.node, "a repeated window must close", hint: "specify how long it stays open: for: 5s")
        return false
      }
      if length >= every, map.parser.injectionPoint != .connection {
        map.parser.warn(map.node, "for is not shorter than every, so the window never closes")
      }
      return true
    })
}

extension InjectionPoint {
  /// Whether there is a push.
  var hasPush: Bool { self == .request || self == .response }

  /// Whether no stream can have been opened yet.
  var isBeforeStreams: Bool { self == .accept || self == .tls || self == .settings }
}
