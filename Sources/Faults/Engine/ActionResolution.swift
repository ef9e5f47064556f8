import APNSMockRules
import APNSMockFaultModel

/// Resolves the action of a rule that fired: one action of a choice, the next step of a sequence, a delay of a fixed
/// length.
struct ActionResolution {
  private let match: MatchedRule
  private let rule: PreparedRule
  private let plan: FaultPlan
  /// The sequences that take a step when the rule has fired.
  private(set) var steps: [Int] = []

  init(match: MatchedRule, rule: PreparedRule, plan: FaultPlan) {
    self.match = match
    self.rule = rule
    self.plan = plan
  }

  /// Returns the resolved action.
  ///
  /// - Parameters:
  ///   - positions: The number of steps that each sequence has taken.
  ///   - path: The path to `action` in the rule's action, which gives each sequence its own position.
  ///   - depth: The nesting depth of choices.
  mutating func resolve(
    _ action: Action, _ positions: GenerationalCache<Int, Int>, _ context: inout EvaluationContext, path: [Int] = [],
    depth: Int = 1
  ) throws(TriggerPart) -> Action {
    switch action {
    case .choose(let choices):
      let number = draw(String(repeating: "#choose", count: depth)).number
      guard let index = Self.pick(choices, number) else { return .pass }
      return try resolve(choices[index].action, positions, &context, path: path + [index], depth: depth + 1)
    case .sequence(let key, let steps, let onEnd):
      let hash = context.hash(of: key, at: path)
      guard let index = try step(after: positions[hash] ?? 0, of: steps.count, onEnd, hash) else { return .pass }
      return try resolve(steps[index], positions, &context, path: path + [index], depth: depth)
    case .delay(let delay):
      return .delay(.fixed(limited(delay.length { draw("#delay") })))
    case .hang(let duration, let ending):
      return .hang(for: limited(duration), endWith: ending)
    // Everything that keeps a client waiting ends within the profile's limit.
    case .stall(let duration, let ending): return .stall(for: limited(duration), endWith: ending)
    case .silence(let duration): return .silence(for: limited(duration))
    case .respondThenShutDown(let duration, let answer):
      return .respondThenShutDown(for: limited(duration), respond: answer)
    case .settings(var parameters) where parameters.delay > .zero:
      parameters.delay = limited(parameters.delay)
      return .settings(parameters)
    default: return action
    }
  }

  private func draw(_ what: String) -> Draw {
    Draw(rule.drawSource.of(what), key: match.drawKey, ordinal: match.ordinal)
  }

  /// Returns the duration, limited by the profile's `max_hold`.
  private func limited(_ duration: Duration?) -> Duration {
    let limit = plan.profile.limits.maxDelay
    return max(.zero, min(duration ?? limit, limit))
  }

  private static func pick(_ choices: [Action.Choice], _ number: Double) -> Int? {
    var rest = number * choices.reduce(0) { $0 + $1.weight }
    for (index, choice) in choices.enumerated() {
      rest -= choice.weight
      if rest < 0 { return index }
    }
    return choices.indices.last
  }

  /// Returns the index of the current step; nil for a sequence without steps.
  private mutating func step(
    after taken: Int, of count: Int, _ onEnd: Action.SequenceEnd, _ sequence: Int
  ) throws(TriggerPart) -> Int? {
    let position = onEnd == .cycle && count > 0 ? taken % count : taken
    guard position < count else {
      if onEnd == .pass { throw .sequence }
      return count > 0 ? count - 1 : nil
    }
    steps.append(sequence)
    return position
  }
}

extension Action {
  /// Whether the action is performed as written: nothing has to be chosen, drawn or limited, and no push is delayed.
  var isResolved: Bool {
    switch self {
    case .choose, .sequence, .delay, .hang, .stall, .silence, .respondThenShutDown: false
    case .settings(let parameters): parameters.delay == .zero
    case .respond, .resetStream, .resetConnection, .goAway, .close, .loseResponse, .dribble, .splitBody, .truncateBody,
      .garbleBody, .dropHeader, .emptyErrorBody, .changeID, .starveWindow, .ignorePings, .refuse, .alert, .certificate,
      .pass:
      true
    }
  }
}
