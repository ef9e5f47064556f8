package import APNSMockFaultModel
internal import APNSMockRules
package import APNSMockNotation

extension Action.Name {
  /// The schema of the action's value: the parameters of the action.
  var schema: Schema<Action> {
    switch self {
    case .respond:
      .map(Action.Response.schema, make: { .respond($0.response) }) {
        if case .respond(let response) = $0 { ResponseValues(response) } else { nil }
      }
    case .delay: .delay
    case .hang:
      parameters(
        (length: Duration?.none, ending: Action.Ending.resetStream),
        .optional(
          "for", \.length, .duration, default: "`limits.max_hold`", "How long no response is sent."),
        .defaulted("end_with", \.ending, .word, "What happens afterwards; `answer` sends the response of APNs late."),
        make: { .hang(for: $0.length, endWith: $0.ending) }
      ) { if case .hang(let length, let ending) = $0 { (length, ending) } else { nil } }
    case .resetStream:
      parameters(
        UInt32(2), .defaulted("code", \.self, .errorCode, "The error code (RFC 9113, section 7)."),
        make: { .resetStream(code: $0) }
      ) { if case .resetStream(let code) = $0 { code } else { nil } }
    case .resetConnection:
      parameters(
        false,
        .defaulted(
          "after_accepting", \.self, .flag, "Whether APNs has accepted the push before the connection is reset."),
        make: { .resetConnection(afterAccepting: $0) }
      ) { if case .resetConnection(let afterAccepting) = $0 { afterAccepting } else { nil } }
    case .goAway:
      .map(Action.GoAwayParameters.schema(name: rawValue), make: { .goAway($0) }) {
        if case .goAway(let parameters) = $0 { parameters } else { nil }
      }
    case .respondThenShutDown:
      parameters(
        (length: Duration.zero, response: Action.Response(status: 503, reason: Reason.shutdown.text)),
        .required("for", \.length, .duration, "The time until GOAWAY is sent and the connection is closed."),
        .defaulted(
          "respond", \.response, .response, default: "`{status: 503, reason: Shutdown}`",
          "The response to every push until then."),
        make: { .respondThenShutDown(for: $0.length, respond: $0.response) }
      ) { if case .respondThenShutDown(let length, let response) = $0 { (length, response) } else { nil } }
    case .loseResponse:
      parameters(
        Action.Ending.nothing,
        .defaulted(
          "end_with", \.self, .word([.nothing, .resetStream]),
          "How the stream ends: `nothing` leaves it open, `reset_stream` sends RST_STREAM."),
        make: { .loseResponse(endWith: $0) }
      ) { if case .loseResponse(let ending) = $0 { ending } else { nil } }
    case .dribble:
      parameters(
        (chunks: 2, over: Duration.zero),
        .required("chunks", \.chunks, .integer(2...1000), "The number of parts."),
        .required("over", \.over, .positiveDuration, "The time from the header fields to the last part."),
        make: { .dribble(chunks: $0.chunks, over: $0.over) }
      ) { if case .dribble(let chunks, let over) = $0 { (chunks, over) } else { nil } }
    case .dropHeader:
      parameters(
        "", .required("name", \.self, .headerName, "The header field to remove, such as `apns-id`."),
        make: { .dropHeader(name: $0) }
      ) { if case .dropHeader(let name) = $0 { name } else { nil } }
    case .changeID:
      parameters(
        Action.IDChange.upperCase, .required("to", \.self, .word, "The case of the letters of `apns-id`."),
        make: { .changeID($0) }
      ) { if case .changeID(let change) = $0 { change } else { nil } }
    case .starveWindow:
      duration("until the connection ends", "How long no WINDOW_UPDATE is sent.", make: { .starveWindow(for: $0) }) {
        if case .starveWindow(let length) = $0 { length } else { nil }
      }
    case .settings:
      .map(Action.SettingsParameters.schema(name: rawValue), make: { .settings($0) }) {
        if case .settings(let parameters) = $0 { parameters } else { nil }
      }
    case .ignorePings:
      duration("until the connection ends", "How long PING is not acknowledged.", make: { .ignorePings(for: $0) }) {
        if case .ignorePings(let length) = $0 { length } else { nil }
      }
    case .silence:
      duration(
        "`limits.max_hold`", "The time until the connection is closed.", make: { .silence(for: $0) }
      ) {
        if case .silence(let length) = $0 { length } else { nil }
      }
    case .stall:
      parameters(
        (length: Duration?.none, ending: Action.Ending.close),
        .optional(
          "for", \.length, .duration, default: "`limits.max_hold`", "How long the handshake stops."),
        .defaulted(
          "end_with", \.ending, .word([.close, .nothing, .answer]),
          "What happens afterwards; `answer` continues the handshake."),
        make: { .stall(for: $0.length, endWith: $0.ending) }
      ) { if case .stall(let length, let ending) = $0 { (length, ending) } else { nil } }
    case .alert:
      parameters(
        UInt8(40), .defaulted("name", \.self, .alert, "The alert (RFC 8446, section 6)."), make: { .alert(code: $0) }
      ) { if case .alert(let code) = $0 { code } else { nil } }
    case .certificate:
      parameters(
        Action.CertificateDefect.expired, .required("use", \.self, .word, "What is wrong with the certificate."),
        make: { .certificate($0) }
      ) { if case .certificate(let defect) = $0 { defect } else { nil } }
    case .choose: .choose
    case .sequence:
      parameters(
        (key: Trigger.Key.rule, steps: [Action](), onEnd: Action.SequenceEnd.stay),
        .defaulted("key", \.key, .countKey, "The key; each value has its own position in the sequence."),
        .required("steps", \.steps, .steps, "The actions: each time the rule fires, the next one applies."),
        .defaulted(
          "on_end", \.onEnd, .word,
          "After the last step: `stay` repeats it, `cycle` starts again, `pass` ends the rule."),
        make: { .sequence(key: $0.key, steps: $0.steps, onEnd: $0.onEnd) }
      ) { if case .sequence(let key, let steps, let onEnd) = $0 { (key, steps, onEnd) } else { nil } }
    case .close: .withoutParameters(.close)
    case .splitBody: .withoutParameters(.splitBody)
    case .truncateBody: .withoutParameters(.truncateBody)
    case .garbleBody: .withoutParameters(.garbleBody)
    case .emptyErrorBody: .withoutParameters(.emptyErrorBody)
    case .refuse: .withoutParameters(.refuse)
    case .pass: .withoutParameters(.pass)
    }
  }

  /// A description of the action in one sentence of Markdown.
  var summary: String {
    switch self {
    case .respond: "Responds with another status, reason, body or header fields than APNs."
    case .delay: "Delays the response."
    case .hang: "Sends no response for a time, then ends the stream or the connection."
    case .resetStream: "Resets the stream with RST_STREAM."
    case .resetConnection: "Resets the TCP connection."
    case .goAway: "Sends GOAWAY."
    case .close: "Closes the connection without GOAWAY."
    case .respondThenShutDown:
      "Gives every push on the connection the same response for a time, then sends GOAWAY and closes."
    case .loseResponse: "Accepts the push, but never sends the response."
    case .dribble: "Sends the response body in parts, spread over a time."
    case .splitBody: "Sends the response body in two DATA frames."
    case .truncateBody: "Sends only the first half of the response body."
    case .garbleBody: "Replaces the response body by invalid JSON."
    case .dropHeader: "Removes a header field of the response."
    case .emptyErrorBody: "Removes the body of an error response."
    case .changeID: "Changes the case of the letters of `apns-id` in the response."
    case .starveWindow: "Sends no WINDOW_UPDATE for a time, so that the client cannot send payloads."
    case .settings: "Sends other SETTINGS."
    case .ignorePings: "Does not acknowledge PING for a time."
    case .refuse: "Resets the connection immediately after accepting it."
    case .silence: "Processes and sends nothing on the connection for a time, not even a TLS alert; then closes it."
    case .stall: "Stalls the TLS handshake for a time, then closes the connection or continues."
    case .alert: "Sends a TLS alert instead of completing the handshake."
    case .certificate: "Presents a certificate that a verifying client rejects."
    case .pass: "Responds as APNs would; later rules are not evaluated."
    case .choose: "Selects one of several actions by weight, with a seeded draw."
    case .sequence: "Performs the next of several actions each time the rule fires."
    }
  }

  /// An action whose parameters are `fields` of `Root`.
  private func parameters<Root: Sendable>(
    _ initial: Root, _ fields: Field<Root>..., make: @escaping @Sendable (Root) -> Action,
    values: @escaping @Sendable (Action) -> Root?
  ) -> Schema<Action> {
    .map(MapSchema(rawValue, initial, fields: fields), make: make, values: values)
  }

  /// An action whose only parameter is a duration.
  private func duration(
    _ text: String, _ summary: String, make: @escaping @Sendable (Duration?) -> Action,
    values: @escaping @Sendable (Action) -> Duration?
  ) -> Schema<Action> {
    // The outer optional says whether it is this action, the inner one whether the duration is present.
    parameters(Duration?.none, .optional("for", \.self, .duration, default: text, summary), make: make) {
      .some(values($0))
    }
  }
}

extension Schema<Action> {
  /// An action without parameters.
  fileprivate static func withoutParameters(_ action: Action) -> Schema {
    .map(MapSchema("no_parameters", action))
  }

  private typealias DelayValues = (
    fixed: Duration?, uniform: (min: Duration, max: Duration)?,
    lognormal: (median: Duration, sigma: Double, max: Duration)?
  )

  fileprivate static var delay: Schema {
    let map = Schema.map(
      MapSchema<DelayValues>(
        Action.Name.delay.rawValue, (nil, nil, nil),
        .optional("fixed", \.fixed, .duration, "A constant delay."),
        .optional(
          "uniform", \.uniform,
          .map(
            MapSchema(
              "uniform", (min: Duration.zero, max: Duration.zero),
              .required("min", \.min, .duration, "The shortest delay."),
              .required("max", \.max, .duration, "The longest delay.")
            ) { map, delay in
              if delay.min > delay.max { map.parser.fail(map.node, "min is longer than max") }
              return delay.min <= delay.max
            }), "A random delay; all values between `min` and `max` are equally likely."),
        .optional(
          "lognormal", \.lognormal,
          .map(
            MapSchema(
              "lognormal", (median: Duration.zero, sigma: 0.0, max: Duration.zero),
              .required("median", \.median, .positiveDuration, "The median: half of the delays are shorter."),
              .required(
                "sigma", \.sigma, .number(.from(0, to: 10)),
                "The standard deviation of the delay's logarithm: 0 is a constant delay, 1 a wide spread."),
              .required("max", \.max, .positiveDuration, "The longest delay; longer ones are shortened to it.")
            ) { map, delay in
              if delay.median > delay.max { map.parser.fail(map.node, "median is longer than max") }
              return delay.median <= delay.max
            }), "A random delay with a log-normal distribution: many short delays, few long ones.")
      ) { map, delay in
        if [delay.fixed != nil, delay.uniform != nil, delay.lognormal != nil].count(where: \.self) == 1 { return true }
        map.parser.fail(map.node, "a delay is one of fixed, uniform and lognormal", hint: "{fixed: 500ms}")
        return false
      },
      make: { values in
        if let uniform = values.uniform { return .delay(.uniform(min: uniform.min, max: uniform.max)) }
        if let delay = values.lognormal {
          return .delay(.lognormal(median: delay.median, sigma: delay.sigma, max: delay.max))
        }
        return .delay(.fixed(values.fixed ?? .zero))
      },
      values: { action in
        switch action {
        case .delay(.fixed(let length)): (length, nil, nil)
        case .delay(.uniform(let min, let max)): (nil, (min, max), nil)
        case .delay(.lognormal(let median, let sigma, let max)): (nil, nil, (median, sigma, max))
        default: nil
        }
      })
    return Schema(
      form: map.form,
      parse: { parser, node in
        if case .scalar(let scalar) = node.content, DurationFormat.duration(scalar.text) != nil {
          parser.fail(node, "expected a map, not a duration", hint: "did you mean {fixed: \(scalar.text)}?")
          return nil
        }
        return map.parse(parser, node)
      }, write: map.write)
  }

  fileprivate static var choose: Schema {
    Schema(
      form: .list(.choice),
      parse: { parser, node in
        parser.parseActions(node, isChoice: true, orElse: "choose has no alternatives").map(Action.choose)
      },
      write: { action, writer in
        guard case .choose(let choices) = action else { return writer.null() }
        writer.array { writer in
          for choice in choices {
            writer.object { writer in
              writer.name(SchemaParser.weight)
              SchemaParser.weightSchema.write(choice.weight, &writer)
              choice.action.writeMember(to: &writer)
            }
          }
        }
      })
  }
}

extension Schema<[Action]> {
  /// The steps of a sequence.
  fileprivate static let steps = Schema(
    form: .list(.action),
    parse: { parser, node in
      parser.parseActions(node, isChoice: false, orElse: "sequence has no steps")?.map(\.action)
    },
    write: { steps, writer in
      writer.array { writer in
        for step in steps { step.write(to: &writer) }
      }
    })
}

extension Action.GoAwayParameters {
  fileprivate static func schema(name: String) -> MapSchema<Self> {
    MapSchema(
      name, Self(),
      .defaulted("code", \.code, .errorCode, "The error code (RFC 9113, section 7)."),
      .defaulted(
        "last_stream", \.lastStream, .word,
        "The last stream id: the stream before this push, the stream of this push, or 2³¹−1. Later streams are neither accepted nor answered."
      ),
      .defaulted(
        "debug", \.debugData, .textOrJSON(limit: 8192), default: "none", writing: .unlessDefault,
        "The debug data; a map or list is sent as JSON."),
      .defaulted(
        "twice", \.twice, .flag, writing: .unlessDefault,
        "Whether a GOAWAY with the stream id 2³¹−1 is sent first, as in an orderly shutdown."),
      .defaulted(
        "close_after", \.closeAfter, .durationOrNever, "The time from the frame to the close of the connection."))
  }
}

extension Action.SettingsParameters {
  fileprivate static func schema(name: String) -> MapSchema<Self> {
    MapSchema(
      name, Self(),
      .optional(
        "max_concurrent_streams", \.maxConcurrentStreams, .integer(0...UInt32.max), default: "not sent",
        "SETTINGS_MAX_CONCURRENT_STREAMS."),
      .optional(
        "initial_window_size", \.initialWindowSize, .integer(0...UInt32(Int32.max)), default: "not sent",
        "SETTINGS_INITIAL_WINDOW_SIZE, in bytes."),
      .optional(
        "max_header_list_size", \.maxHeaderListSize, .integer(0...UInt32.max), default: "not sent",
        "SETTINGS_MAX_HEADER_LIST_SIZE, in bytes."),
      .defaulted(
        "after", \.after, .duration, writing: .unlessDefault, "The time from the injection point to the frame."),
      .defaulted(
        "delay", \.delay, .duration, writing: .unlessDefault,
        "How long the first SETTINGS frame is delayed; only at `settings`."),
      .defaulted(
        "ack_client", \.acknowledgesClient, .flag, writing: .unlessDefault,
        "Whether the client's SETTINGS are acknowledged from then on.")
    ) { map, parameters in
      if parameters == Self(after: parameters.after), !map.has(\.delay), !map.has(\.acknowledgesClient) {
        map.parser.warn(map.node, "SETTINGS without a setting have no effect")
      }
      if let point = map.parser.injectionPoint, point != .settings, map.has(\.delay) {
        return map.fail(
          at: \.delay, "the first SETTINGS are sent before \(point.rawValue)",
          hint: "write at: settings, or after for further SETTINGS")
      }
      return true
    }
  }
}

// MARK: - Maps with one action

extension Action {
  /// Writes the action in the format of a profile file: an object whose only member is the action's name, with its
  /// parameters.
  package func write(to writer: inout JSONWriter) {
    writer.object(writeMember)
  }

  fileprivate func writeMember(to writer: inout JSONWriter) {
    writer.name(name.rawValue)
    name.schema.write(self, &writer)
  }
}

extension SchemaParser {
  static let weight = "weight"
  static let weightSchema = Schema<Double>.number(.above(0, to: 1e9))
  static let weightField = FieldDescription(
    weight, weightSchema.form, default: "1", "The probability relative to the other weights.")

  /// Parses a map with one action.
  func parseAction(_ node: SchemaNode) -> Action? { parseChoice(node, isChoice: false, isNested: false)?.action }

  /// Parses a list of actions.
  ///
  /// - Parameters:
  ///   - isChoice: Whether the actions may have weights.
  ///   - message: The error if the list is empty.
  fileprivate func parseActions(_ node: SchemaNode, isChoice: Bool, orElse message: String) -> [Action.Choice]? {
    guard let elements = parseList(node) else { return nil }
    guard !elements.isEmpty else {
      fail(node, message)
      return nil
    }
    let choices = elements.map { parseChoice($0, isChoice: isChoice, isNested: true) }
    let valid = choices.compactMap { $0 }
    return valid.count == choices.count ? valid : nil
  }

  private func parseChoice(_ node: SchemaNode, isChoice: Bool, isNested: Bool) -> Action.Choice? {
    if case .scalar(let scalar) = node.content, Action.Name(rawValue: scalar.text) != nil {
      fail(node, "an action is a map, not \(node.kind)", hint: "did you mean {\(scalar.text): {}}?")
      return nil
    }
    if case .list = node.content {
      fail(node, "expected one action, not a list", hint: "choose and sequence accept several")
      return nil
    }
    guard let entries = parseEntries(node) else { return nil }
    let names = Action.Name.allCases.map(\.rawValue) + (isChoice ? [Self.weight] : [])
    var weight: Double? = 1
    var found: (name: Action.Name, value: SchemaNode)?
    var isUnknown = false
    for entry in entries {
      let value = node.member(entry)
      if isChoice, entry.key == Self.weight {
        weight = Self.weightSchema.parse(self, value)
      } else if let name = Action.Name(rawValue: entry.key) {
        if let found {
          fail(
            at: entry.position, value.path, "a second action, after \(found.name.rawValue)",
            hint: isNested ? "each part has one" : "a rule has one; choose and sequence accept several")
        } else {
          found = (name, value)
        }
      } else {
        isUnknown = true
        failUnknown(entry, in: node, among: names)
      }
    }
    guard let (name, value) = found else {
      if !isUnknown { fail(node, "the action is missing", hint: "expected one of \(names.joined(separator: ", "))") }
      return nil
    }
    if let injectionPoint, !name.injectionPoints.contains(injectionPoint) {
      let points = InjectionPoint.allCases.filter(name.injectionPoints.contains)
      fail(
        at: value.keyPosition, value.path, "not possible at \(injectionPoint.rawValue)",
        hint: "did you mean at: \(points.map(\.rawValue).joinedWithOr)?")
    }
    guard let action = name.schema.parse(self, value), let weight else { return nil }
    return Action.Choice(weight: weight, action: action)
  }
}

extension Action {
  /// All actions that this action can result in: for `choose` and `sequence`, those of their parts, otherwise the
  /// action itself.
  var leaves: [Action] {
    switch self {
    case .choose(let choices): choices.flatMap(\.action.leaves)
    case .sequence(_, let steps, _): steps.flatMap(\.leaves)
    default: [self]
    }
  }
}
