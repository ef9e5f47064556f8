package import APNSMockNotation
package import APNSMockFaultModel
internal import APNSMockRules
internal import APNSMockHTTPMessage

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

  /// Evaluates the rules at an injection point. Acquires one lock, usually once, and none if nothing has to be
  /// counted.
  ///
  /// Returns the rules' injections in order; the last one replaces what APNs would do unless it `continues`.
  ///
  /// - Parameters:
  ///   - now: Monotonic nanoseconds.
  ///   - additionsOnly: Whether only rules that add something are evaluated, because another has decided the exchange.
  package func decide(
    _ traffic: Traffic, at injectionPoint: InjectionPoint, now: MonotonicTime, additionsOnly: Bool = false
  ) -> [Injection] {
    guard mayInject(at: injectionPoint) else { return [] }
    let remaining = traffic.push.map {
      let attempt = $0.attempt
      return quickResult(
        at: injectionPoint, for: Traffic.PushSummary($0), attempt: { attempt }, now: now,
        additionsOnly: additionsOnly)
    }
    if let remaining, let injection = fire(remaining) { return [injection] }
    return decide(traffic, at: injectionPoint, now: now, additionsOnly: additionsOnly, among: remaining)
  }

  /// Fires the first remaining rule.
  ///
  /// - Returns: nil if the quick evaluation was not conclusive, or if the rule was removed since then: in both cases
  ///   nothing is counted.
  package func fire(_ remaining: QuickResult) -> Injection? {
    guard let drawResult = remaining.drawResult else { return nil }
    let injection = Injection(rules[remaining.first].effect, drawResult)
    return ruleCounters.fire(injection) ? injection : nil
  }

  /// Fires the rule as `fire(_:)` does, if another response is all that it injects.
  package func fireConstantResponse(
    _ remaining: QuickResult
  ) -> (injection: Injection, response: ConstantResponse)? {
    guard remaining.drawResult != nil, let response = rules[remaining.first].effect.constantResponse,
      let injection = fire(remaining)
    else { return nil }
    return (injection, response)
  }

  /// Evaluates the rules that remain after a quick evaluation that was not conclusive.
  package func decide(
    _ traffic: Traffic, at injectionPoint: InjectionPoint, now: MonotonicTime, additionsOnly: Bool = false,
    among remaining: QuickResult?
  ) -> [Injection] {
    guard mayInject(at: injectionPoint) else { return [] }
    var context = EvaluationContext(traffic, identity: profile.pushIdentity)
    var evaluations: [(rule: PreparedRule, evaluation: RuleEvaluation)] = []
    let kind = traffic.push?.kind
    for rule in rules(at: injectionPoint).suffix(remaining?.count ?? .max)
    where (!additionsOnly || rule.alwaysContinues) && rule.applies(to: kind) {
      let evaluation = evaluate(rule, &context, now: now)
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
    guard magicTokens, context.traffic.push?.verdict.isAccepted == true else { return nil }
    let token = context.traffic.push?.verdict.facts.deviceToken
    let isMarked = context.traffic.push?.request.headers.bytes.withUnsafeBytes { bytes in
      bytes.field(token).map { MagicToken.isMarked(UnsafeRawBufferPointer(rebasing: $0)) } ?? false
    }
    return isMarked == true ? MagicToken(context.text(of: .deviceToken)) : nil
  }

  // MARK: - Rules

  func rules(at injectionPoint: InjectionPoint) -> ArraySlice<PreparedRule> { rules[range(of: injectionPoint)] }

  /// Runs the quick evaluation: evaluates rules from the push key and APNs' verdict alone until one of them fires or
  /// needs full evaluation. Counts the rules it skips, so pass the result to `fire` or `decide`.
  ///
  /// - Parameter attempt: The attempt number of the push, from 1; called only if a rule depends on it.
  package func quickResult(
    at injectionPoint: InjectionPoint, for summary: Traffic.PushSummary, attempt: () -> Int, now: MonotonicTime,
    additionsOnly: Bool = false
  ) -> QuickResult {
    let range = range(of: injectionPoint)
    // Iterate over indices: a slice would be retained for each push.
    for index in range {
      let rule = rules[index]
      if additionsOnly, !rule.alwaysContinues { continue }
      guard rule.applies(to: summary.kind) else { continue }
      switch rule.quickEvaluation(summary, attempt: attempt, profile.pushIdentity, now: now) {
      case .skipped(let reason): rule.skipCounters.add(reason)
      case .fires(let drawResult):
        return QuickResult(first: index, count: range.upperBound - index, drawResult: drawResult)
      case .unclear: return QuickResult(first: index, count: range.upperBound - index)
      }
    }
    return QuickResult()
  }

  private func range(of injectionPoint: InjectionPoint) -> Range<Int> { ranges[Int(injectionPoint.ordinal)] }

  /// Returns whether rules can fire at an injection point; false while fault injection is paused.
  package func hasRules(at injectionPoint: InjectionPoint) -> Bool { !range(of: injectionPoint).isEmpty }

  func evaluate(_ rule: PreparedRule, _ context: inout EvaluationContext, now: MonotonicTime) -> RuleEvaluation {
    if let push = context.traffic.push, !push.verdict.isAccepted, rule.requiresAcceptance { return .rejectedByAPNs }
    if let miss = rule.condition.firstFailure(&context) { return .missed(miss) }
    let trigger = rule.rule.trigger
    if let streams = trigger.afterStreams, context.traffic.connection.streamsOpened < streams {
      return .stopped(.afterStreams)
    }
    var opening: MonotonicTime = 0
    let elapsed = now &- rule.activatedAt
    if let window = trigger.window {
      guard let begin = window.opening(at: elapsed) else { return .stopped(.window) }
      opening = begin
    }
    return .matched(match(rule, &context, opening: opening, elapsed: elapsed, now: now))
  }

  private func match(
    _ rule: PreparedRule, _ context: inout EvaluationContext, opening: MonotonicTime, elapsed: Int64, now: MonotonicTime
  ) -> MatchedRule {
    let trigger = rule.rule.trigger
    var match = MatchedRule(
      opening: rule.activatedAt &+ opening, countKey: 0, rateKey: 0, drawKey: .text(""), ordinal: 0, now: now)
    if trigger.isCounting || trigger.times != nil { match.countKey = context.hash(of: trigger.countKey) }
    if let key = trigger.overLimit?.key { match.rateKey = context.hash(of: key) }
    match.probability = trigger.probability?.value(at: elapsed)
    let isDrawn = match.probability.map { $0 > 0 && $0 < 1 } ?? false
    guard isDrawn || rule.drawsForAction else { return match }
    match.drawKey = context.drawKey(of: trigger.drawKey)
    if trigger.drawKey == .attempt {
      // Without a push, each opening of the window counts as an attempt.
      match.ordinal = context.traffic.push?.attempt ?? trigger.window?.ordinal(of: opening) ?? 0
    }
    if isDrawn { match.draw = Draw(rule.drawSource, key: match.drawKey, ordinal: match.ordinal).number }
    return match
  }
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
