/// A rule that fired, with the action to carry out.
package struct Injection: Sendable, Equatable {
  /// The effect of a rule. A class, because the inbox keeps injections: those of a rule that has the same effect on
  /// every push share one instance.
  package final class RuleEffect: Sendable, Equatable {
    package let profile: String?
    package let rule: String
    package let action: Action
    package let followedBy: Action?
    package let continues: Bool
    package let counterID: Int?
    /// Whether the push is forwarded to upstream, although its client gets no response.
    package let forwards: Bool
    /// The response, if the effect is nothing else.
    package let constantResponse: ConstantResponse?

    package init(
      profile: String?, rule: String, action: Action, followedBy: Action? = nil, continues: Bool,
      forwards: Bool = false,
      counterID: Int?
    ) {
      self.profile = profile
      self.rule = rule
      self.action = action
      self.followedBy = followedBy
      self.continues = continues
      self.forwards = forwards
      self.counterID = counterID
      constantResponse = continues || followedBy != nil ? nil : action.constantResponse
    }

    /// - Parameter action: The resolved action.
    package convenience init(_ rule: Rule, profile: String?, doing action: Action, counterID: Int) {
      self.init(
        profile: profile, rule: rule.name, action: action,
        continues: rule.continues ?? action.name.continues ?? false, forwards: rule.then == .forward,
        counterID: counterID)
    }

    package static func == (one: RuleEffect, other: RuleEffect) -> Bool {
      one === other
        || one.profile == other.profile && one.rule == other.rule && one.action == other.action
          && one.followedBy == other.followedBy && one.continues == other.continues && one.counterID == other.counterID
          && one.forwards == other.forwards
    }
  }

  /// The draw that made the rule fire.
  package struct DrawResult: Sendable, Equatable {
    package var draw: Double?
    package var probability: Double?
    package var ordinal = 0

    package init(draw: Double? = nil, probability: Double? = nil, ordinal: Int = 0) {
      self.draw = draw
      self.probability = probability
      self.ordinal = ordinal
    }
  }

  package let effect: RuleEffect
  package let drawResult: DrawResult

  package init(_ effect: RuleEffect, _ drawResult: DrawResult) {
    self.effect = effect
    self.drawResult = drawResult
  }

  package init(
    profile: String? = nil, rule: String, action: Action, followedBy: Action? = nil, continues: Bool,
    draw: Double? = nil, probability: Double? = nil, ordinal: Int = 0
  ) {
    self.init(
      RuleEffect(
        profile: profile, rule: rule, action: action, followedBy: followedBy, continues: continues, counterID: nil),
      DrawResult(draw: draw, probability: probability, ordinal: ordinal))
  }

  /// The profile that the rule belongs to; nil for added rules and magic device tokens.
  package var profile: String? { effect.profile }
  /// The rule's name; for a magic device token, `magic-` and its code.
  package var rule: String { effect.rule }
  /// The resolved action: never `choose` or `sequence`; delays have a fixed length within the profile's limits.
  package var action: Action { effect.action }
  /// The action that follows immediately: the GOAWAY after a 503 `Shutdown` of a magic device token.
  package var followedBy: Action? { effect.followedBy }
  /// Whether evaluation continued with later rules.
  package var continues: Bool { effect.continues }
  /// The number drawn, at least 0 and below `probability`; nil if nothing was drawn.
  package var draw: Double? { drawResult.draw }
  /// The probability; nil for a rule without one.
  package var probability: Double? { drawResult.probability }
  /// The ordinal of the draw: the attempt number, or 0.
  package var ordinal: Int { drawResult.ordinal }
  /// The key of the rule's counters, for `RuleCounters.release`.
  package var counterID: Int? { effect.counterID }

  /// Returns the same injection with another action, for the pushes on a connection that is about to shut down.
  package func replacingAction(with action: Action) -> Injection {
    Injection(
      profile: profile, rule: rule, action: action, continues: false, draw: draw, probability: probability,
      ordinal: ordinal)
  }

  /// Whether the injection delays the push, so that it counts toward `max_active` until `RuleCounters.release`.
  package var delaysPush: Bool { action.delaysPush }
}

extension Action {
  /// Whether the action delays a push.
  package var delaysPush: Bool {
    switch self {
    case .delay, .hang: true
    case .respond, .resetStream, .resetConnection, .goAway, .close, .respondThenShutDown, .loseResponse, .dribble,
      .splitBody, .truncateBody, .garbleBody, .dropHeader, .emptyErrorBody, .changeID, .starveWindow, .settings,
      .ignorePings, .refuse, .silence, .stall, .alert, .certificate, .pass, .choose, .sequence:
      false
    }
  }
}

/// The injections of rules that fired. A single injection, the usual case, needs no array.
///
/// `FaultPlan.decide` returns those at one injection point in the order of the rules: only the last one may end the
/// evaluation. A record has those for one push, beginning with the one that decided the outcome, if any.
package struct Injections: Sendable, Equatable, RandomAccessCollection, ExpressibleByArrayLiteral {
  // Stored in parts, because the runtime copies an optional of the whole far more slowly.
  private var effect: Injection.RuleEffect?
  private var drawResult = Injection.DrawResult()
  private var others: [Injection] = []

  private var one: Injection? { effect.map { Injection($0, drawResult) } }

  /// Creates an empty collection.
  package init() {}

  /// Creates a collection of one injection.
  package init(_ injection: Injection) { begin(with: injection) }

  /// Creates a collection with the injections in the given order.
  package init(_ injections: some Sequence<Injection>) {
    for injection in injections { append(injection) }
  }

  /// Creates a collection with the injections in the given order.
  package init(arrayLiteral injections: Injection...) { self.init(injections) }

  /// 0.
  package var startIndex: Int { 0 }
  /// The number of injections.
  package var endIndex: Int { effect == nil ? 0 : others.count + 1 }

  /// The injection at `position`, from 0.
  package subscript(position: Int) -> Injection {
    if position == 0, let one { return one }
    return others[position - 1]
  }

  /// Appends an injection.
  package mutating func append(_ injection: Injection) {
    if effect == nil { begin(with: injection) } else { others.append(injection) }
  }

  /// Inserts the deciding injection at the front.
  package mutating func prepend(_ injection: Injection) {
    if let one { others.insert(one, at: 0) }
    begin(with: injection)
  }

  private mutating func begin(with injection: Injection) {
    effect = injection.effect
    drawResult = injection.drawResult
  }
}

/// The decision of the rules at one injection point.
extension Injections {
  /// The injections that change any response, that of APNs or of the deciding injection.
  package var additions: [Injection] { filter(\.continues) }
  /// The injection that replaces what APNs would do; nil for none. With the action `pass`, a rule asked for what APNs
  /// would do.
  package var decidingInjection: Injection? { last.flatMap { $0.continues ? nil : $0 } }
  /// The injection and its response, if another response is all that the rules decide.
  package var constantResponse: (injection: Injection, response: ConstantResponse)? {
    guard others.isEmpty, let one, let response = one.effect.constantResponse else { return nil }
    return (one, response)
  }
}

/// An injection as records store it: without a strong reference, so that it can be copied and discarded as plain
/// bytes.
///
/// The owner must keep `referent` alive for as long as the value is used.
package struct PackedInjection: Sendable {
  private let effect: Unmanaged<Injection.RuleEffect>
  private let drawResult: Injection.DrawResult

  /// Packs an injection.
  package init(_ injection: borrowing Injection) {
    effect = .passUnretained(injection.effect)
    drawResult = injection.drawResult
  }

  /// The injection.
  package var injection: Injection { Injection(effect.takeUnretainedValue(), drawResult) }

  /// The object that the owner must keep alive.
  package var referent: Unmanaged<AnyObject> { .fromOpaque(effect.toOpaque()) }
}
