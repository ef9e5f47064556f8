package import APNSMockNotation
package import APNSMockFaultModel
internal import APNSMockRules

/// The active rules. Immutable; their counters are in `ruleCounters`, which successive plans share. A class, because
/// every push uses the plan and copying a reference is cheap.
///
/// A decision depends only on the rules, the counters, the traffic, the given time and, for draws, the seed. Nothing
/// is random.
package final class FaultPlan: Sendable {
  /// The active profile.
  package let profile: Profile
  /// The active rules that were added to the profile's, newest first.
  package let addedRules: [Rule]
  /// The seed of all draws.
  package let seed: UInt64
  /// Whether magic device tokens are enabled.
  package let magicTokens: Bool
  /// Whether fault injection is paused.
  package let isPaused: Bool
  /// The time at which the profile was activated, in monotonic nanoseconds.
  package let activatedAt: MonotonicTime
  /// The times at which added rules were activated, by rule name, in monotonic nanoseconds.
  package let addedRulesActivatedAt: [String: Int64]
  /// The counters of all rules.
  package let ruleCounters: RuleCounters

  /// All rules in evaluation order, grouped by injection point.
  private let rules: [PreparedRule]
  /// The range in `rules` for each injection point.
  private let ranges: [Range<Int>]

  /// Creates a plan and activates it: `ruleCounters` drops the counters of rules that the plan does not have or that
  /// have changed.
  ///
  /// - Parameters:
  ///   - addedRules: Newest first.
  ///   - activatedAt: Monotonic nanoseconds; windows and ramps of the profile's rules start then.
  ///   - addedRulesActivatedAt: The same for added rules, by name; a rule that is missing has the profile's time.
  package init(
    profile: Profile, addedRules: [Rule] = [], seed: UInt64, magicTokens: Bool = true, isPaused: Bool = false,
    activatedAt: MonotonicTime, addedRulesActivatedAt: [String: Int64] = [:], ruleCounters: RuleCounters
  ) {
    self.profile = profile
    self.addedRules = addedRules
    self.seed = seed
    self.magicTokens = magicTokens
    self.isPaused = isPaused
    self.activatedAt = activatedAt
    self.addedRulesActivatedAt = addedRulesActivatedAt
    self.ruleCounters = ruleCounters
    let all = addedRules.map { (rule: $0, profile: String?.none) } + profile.rules.map { ($0, profile.name) }
    let prepared = zip(all, ruleCounters.activate(all)).map { entry, counters in
      let activated = entry.profile == nil ? addedRulesActivatedAt[entry.rule.name] ?? activatedAt : activatedAt
      return PreparedRule(
        entry.rule, profile: entry.profile, counterID: counters.counterID, skipCounters: counters.skipCounters,
        activatedAt: activated, seed: seed)
    }
    var rules: [PreparedRule] = []
    var ranges: [Range<Int>] = []
    for injectionPoint in InjectionPoint.allCases {
      let start = rules.count
      if !isPaused { rules += prepared.filter { $0.rule.injectionPoint == injectionPoint } }
      ranges.append(start..<rules.count)
    }
    self.rules = rules
    self.ranges = ranges
  }

  /// Returns a plan with the same rules and counts. What it decides is not counted by this one.
  package func copy() -> FaultPlan {
    FaultPlan(
      profile: profile, addedRules: addedRules, seed: seed, magicTokens: magicTokens, isPaused: isPaused,
      activatedAt: activatedAt, addedRulesActivatedAt: addedRulesActivatedAt,
      ruleCounters: RuleCounters(copying: ruleCounters))
  }

  /// Returns whether any fault can be injected at an injection point. At `request` this includes magic
  /// device tokens, which only a marked token can activate: see `MagicToken.isMarked`.
  @inline(__always)
  package func mayInject(at injectionPoint: InjectionPoint) -> Bool {
    hasRules(at: injectionPoint) || injectionPoint == .request && magicTokens && !isPaused
  }

  /// Whether magic device tokens currently inject faults.
  package var areMagicTokensActive: Bool { magicTokens && !isPaused }

  /// Returns the next time at which the rules at `connection` must be evaluated again, because a window opens or the
  /// connection reaches an age or idle time that a rule names; nil for never. Times are in monotonic nanoseconds.
  package func nextEvaluation(after now: MonotonicTime, for connection: Traffic.Connection) -> Int64? {
    rules(at: .connection).flatMap { rule -> [Int64] in
      var times = rule.condition.timesToBounds(of: connection).map { now.addingClamped($0) }
      if let opening = rule.rule.trigger.window?.nextOpening(after: now &- rule.activatedAt) {
        times.append(opening &+ rule.activatedAt)
      }
      return times
    }.min()
  }

  /// Returns what the rules at an injection point decide about a push: their injections in order. The last one replaces
  /// what APNs would do unless it `continues`.
  ///
  /// Nearly all pushes need neither a lock nor an allocation.
  ///
  /// - Parameters:
  ///   - now: Monotonic nanoseconds.
  ///   - additionsOnly: Whether only rules that add something are evaluated, because another has decided the exchange.
  ///   - attempt: Returns the attempt number of the push, from 1; called only if a rule depends on it.
  ///   - traffic: Returns the push and its connection; called only for rules that need them.
  package func decide(
    at injectionPoint: InjectionPoint, about push: Traffic.PushSummary, now: MonotonicTime, additionsOnly: Bool = false,
    attempt: () -> Int, traffic: () -> Traffic
  ) -> Injections {
    let range = range(of: injectionPoint)
    // Iterate over indices: a slice would be retained for each push.
    for index in range {
      let rule = rules[index]
      guard !additionsOnly || rule.alwaysContinues, rule.applies(to: push.kind) else { continue }
      switch rule.evaluate(push, profile.pushIdentity, attempt: attempt, now: now) {
      case .matched(let match)?:
        let injection = Injection(rule.effect, match.drawResult)
        // A rule that a newer plan has removed does nothing.
        if ruleCounters.fire(injection) { return Injections(injection) }
      case let evaluation?: rule.skipCounters.add(evaluation)
      case nil:
        return decide(
          traffic(), by: rules[index..<range.upperBound], at: injectionPoint, now: now, additionsOnly: additionsOnly)
      }
    }
    guard injectionPoint == .request, push.hasMagicToken, areMagicTokensActive else { return Injections() }
    return decide(traffic(), by: [], at: injectionPoint, now: now)
  }

  /// Returns what the rules at an injection point decide about a push or a connection.
  package func decide(
    _ traffic: Traffic, at injectionPoint: InjectionPoint, now: MonotonicTime, additionsOnly: Bool = false
  ) -> Injections {
    guard let push = traffic.push else {
      return decide(traffic, by: rules(at: injectionPoint), at: injectionPoint, now: now)
    }
    return decide(
      at: injectionPoint, about: Traffic.PushSummary(push), now: now, additionsOnly: additionsOnly,
      attempt: { push.attempt }, traffic: { traffic })
  }

  /// Evaluates rules, and then the magic device token. Acquires one lock, and none if nothing has to be counted.
  private func decide(
    _ traffic: Traffic, by candidates: ArraySlice<PreparedRule>, at injectionPoint: InjectionPoint, now: MonotonicTime,
    additionsOnly: Bool = false
  ) -> Injections {
    var context = EvaluationContext(traffic, identity: profile.pushIdentity)
    var evaluations: [(rule: PreparedRule, evaluation: RuleEvaluation)] = []
    let kind = traffic.push?.kind
    for rule in candidates where (!additionsOnly || rule.alwaysContinues) && rule.applies(to: kind) {
      let evaluation = rule.evaluate(&context, now: now)
      evaluations.append((rule, evaluation))
      // Skip the rules after one that certainly ends the evaluation.
      if case .matched(let match) = evaluation, rule.isStateless, rule.alwaysStops, match.passesDraw {
        break
      }
    }
    let magic = injectionPoint == .request ? magicToken(&context) : nil
    if evaluations.isEmpty, magic == nil { return [] }
    return ruleCounters.apply(evaluations, magic: magic, in: self, &context)
  }

  private func magicToken(_ context: inout EvaluationContext) -> MagicToken? {
    guard areMagicTokensActive, let push = context.traffic.push, push.verdict.isAccepted,
      MagicToken.isMarked(push.request, push.verdict)
    else { return nil }
    return MagicToken(context.text(of: .deviceToken))
  }

  // MARK: - Rules

  func rules(at injectionPoint: InjectionPoint) -> ArraySlice<PreparedRule> { rules[range(of: injectionPoint)] }

  private func range(of injectionPoint: InjectionPoint) -> Range<Int> { ranges[Int(injectionPoint.ordinal)] }

  /// Returns whether rules can fire at an injection point; false while fault injection is paused.
  package func hasRules(at injectionPoint: InjectionPoint) -> Bool { !range(of: injectionPoint).isEmpty }
}

extension InjectionPoint {
  fileprivate var ordinal: UInt8 {
    switch self {
    case .accept: 0
    case .tls: 1
    case .settings: 2
    case .request: 3
    case .response: 4
    case .connection: 5
    }
  }
}
