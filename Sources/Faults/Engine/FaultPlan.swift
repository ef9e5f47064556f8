internal import APNSRules
internal import HTTPMessage

/// The active rules. Immutable; their counters are in `tallies`, which successive plans share. A class, because
/// every push uses the plan and copying a reference is cheap.
///
/// A decision depends only on the rules, the counters, the traffic, the given time and, for draws, the seed. Nothing
/// is random.
public final class FaultPlan: Sendable {
  /// The active profile.
  public let profile: Profile
  /// The active ad-hoc rules, which were added separately from the profile, newest first.
  public let adHoc: [Rule]
  /// The seed of all draws.
  public let seed: UInt64
  /// Whether magic device tokens are enabled.
  public let magicTokens: Bool
  /// Whether fault injection is paused.
  public let halted: Bool
  /// The time at which the profile was activated, in monotonic nanoseconds.
  public let activatedAt: Int64
  /// The times at which ad-hoc rules were activated, by rule name, in monotonic nanoseconds.
  public let adHocActivatedAt: [String: Int64]
  /// The counters of all rules.
  public let tallies: Tallies

  /// All rules in evaluation order, grouped by injection point.
  private let rules: [PreparedRule]
  /// The range in `rules` for each injection point.
  private let places: [Range<Int>]

  /// Creates a plan and activates it: `tallies` drops the counters of rules that the plan does not have or that have
  /// changed.
  ///
  /// - Parameters:
  ///   - adHoc: newest first.
  ///   - activatedAt: monotonic nanoseconds; windows and ramps of the profile's rules start then.
  ///   - adHocActivatedAt: the same for ad-hoc rules, by name; a rule that is missing has the profile's time.
  public init(
    profile: Profile, adHoc: [Rule] = [], seed: UInt64, magicTokens: Bool = true, halted: Bool = false,
    activatedAt: Int64, adHocActivatedAt: [String: Int64] = [:], tallies: Tallies
  ) {
    self.profile = profile
    self.adHoc = adHoc
    self.seed = seed
    self.magicTokens = magicTokens
    self.halted = halted
    self.activatedAt = activatedAt
    self.adHocActivatedAt = adHocActivatedAt
    self.tallies = tallies
    let all = adHoc.map { (rule: $0, profile: String?.none) } + profile.rules.map { ($0, profile.name) }
    let prepared = zip(all, tallies.adopt(all)).map { entry, counters in
      let activated = entry.profile == nil ? adHocActivatedAt[entry.rule.name] ?? activatedAt : activatedAt
      return PreparedRule(
        entry.rule, profile: entry.profile, slot: counters.slot, dismissals: counters.dismissals,
        activatedAt: activated, seed: seed)
    }
    var rules: [PreparedRule] = []
    var places: [Range<Int>] = []
    for moment in Moment.allCases {
      let start = rules.count
      if !halted { rules += prepared.filter { $0.rule.moment == moment } }
      places.append(start..<rules.count)
    }
    self.rules = rules
    self.places = places
  }

  /// Returns whether any fault can be injected at an injection point. For `request`, check `concerns` as well.
  @inline(__always)
  public func isActive(at moment: Moment) -> Bool {
    hasRules(at: moment) || moment == .request && magicTokens && !halted
  }

  /// Returns whether any fault can be injected at `request` for a push to this device token: whether there are
  /// rules, or the token is an enabled magic device token.
  ///
  /// - Parameter deviceToken: the bytes of the token, in either case.
  public func concerns(deviceToken: UnsafeRawBufferPointer?) -> Bool {
    hasRules(at: .request) || takesMagicTokens && deviceToken.map(MagicToken.isMarked) == true
  }

  /// Whether magic device tokens currently inject faults.
  public var takesMagicTokens: Bool { magicTokens && !halted }

  /// Returns the next time at which the rules at `connection` must be evaluated again, because a window opens or the
  /// connection reaches an age or idle time that a rule names; nil for never. Times are in monotonic nanoseconds.
  public func nextLook(after now: Int64, for connection: Traffic.Connection) -> Int64? {
    rules(at: .connection).flatMap { rule -> [Int64] in
      var times = rule.condition.timesToBounds(of: connection).map { now.saturatingAdd($0) }
      if let opening = rule.rule.trigger.window?.nextOpening(after: now &- rule.activatedAt) {
        times.append(opening &+ rule.activatedAt)
      }
      return times
    }.min()
  }

  /// Evaluates the rules at an injection point. Acquires one lock, usually once, and none if nothing has to be
  /// counted.
  ///
  /// - Parameters:
  ///   - now: monotonic nanoseconds.
  ///   - excludingOutcomes: whether only additions are allowed, because an outcome was injected before.
  public func decide(
    _ traffic: Traffic, at moment: Moment, now: Int64, excludingOutcomes: Bool = false
  ) -> Decision {
    guard isActive(at: moment) else { return Decision() }
    let left = traffic.push.map {
      let attempt = $0.attempt
      return rulesLeft(
        at: moment, for: Traffic.Glance($0), attempt: { attempt }, now: now, excludingOutcomes: excludingOutcomes)
    }
    if let left, let injection = fire(left) { return Decision(outcome: injection) }
    return decide(traffic, at: moment, now: now, excludingOutcomes: excludingOutcomes, among: left)
  }

  /// Fires the first remaining rule if the quick evaluation was conclusive; otherwise returns nil and counts
  /// nothing.
  public func fire(_ left: RulesLeft) -> Injection? {
    guard let chance = left.chance else { return nil }
    let injection = Injection(rules[left.first].deed, chance)
    return tallies.fire(injection) ? injection : nil
  }

  /// Fires the rule as `fire(_:)` does, if another response is all that it injects.
  public func firePlainAnswer(_ left: RulesLeft) -> (by: Injection, answer: PlainAnswer)? {
    guard left.chance != nil, let answer = rules[left.first].deed.plainAnswer, let injection = fire(left) else {
      return nil
    }
    return (injection, answer)
  }

  /// Evaluates the rules that remain after a quick evaluation that was not conclusive.
  public func decide(
    _ traffic: Traffic, at moment: Moment, now: Int64, excludingOutcomes: Bool = false, among left: RulesLeft?
  ) -> Decision {
    guard isActive(at: moment) else { return Decision() }
    var reading = Reading(traffic, identity: profile.pushIdentity)
    var looks: [(rule: PreparedRule, look: RuleLook)] = []
    for rule in rules(at: moment).suffix(left?.count ?? .max) where !excludingOutcomes || rule.alwaysContinues {
      let look = look(at: rule, &reading, now: now)
      looks.append((rule, look))
      // Skip the rules after one that certainly ends the evaluation.
      if case .met(let candidate) = look, rule.isStateless, rule.alwaysStops, candidate.isDrawn {
        break
      }
    }
    let magic = moment == .request ? magicToken(&reading) : nil
    if looks.isEmpty, magic == nil { return Decision() }
    return tallies.settle(looks, magic: magic, in: self, &reading)
  }

  private func magicToken(_ reading: inout Reading) -> MagicToken? {
    guard magicTokens, reading.traffic.push?.verdict.isAccepted == true else { return nil }
    let token = reading.traffic.push?.verdict.facts.deviceToken
    let isMarked = reading.traffic.push?.request.headers.bytes.withUnsafeBytes { bytes in
      bytes.field(token).map { MagicToken.isMarked(UnsafeRawBufferPointer(rebasing: $0)) } ?? false
    }
    return isMarked == true ? MagicToken(reading.text(of: .deviceToken)) : nil
  }

  // MARK: - Rules

  func rules(at moment: Moment) -> ArraySlice<PreparedRule> { rules[place(of: moment)] }

  /// Runs the quick evaluation: evaluates rules from the push key and APNs' verdict alone until one of them fires or
  /// needs full evaluation, and returns the remaining rules. Counts the rules it skips, so pass the result to `fire`
  /// or `decide`.
  ///
  /// - Parameter attempt: the attempt number of the push, from 1; called only if a rule depends on it.
  public func rulesLeft(
    at moment: Moment, for glance: Traffic.Glance, attempt: () -> Int, now: Int64, excludingOutcomes: Bool = false
  ) -> RulesLeft {
    let place = place(of: moment)
    // Iterate over indices: a slice would be retained for each push.
    for index in place {
      let rule = rules[index]
      if excludingOutcomes, !rule.alwaysContinues { continue }
      switch rule.impression(glance, attempt: attempt, profile.pushIdentity, now: now) {
      case .dismissed(let dismissal): rule.dismissals.add(dismissal)
      case .fires(let chance): return RulesLeft(first: index, count: place.upperBound - index, chance: chance)
      case .unclear: return RulesLeft(first: index, count: place.upperBound - index)
      }
    }
    return RulesLeft()
  }

  private func place(of moment: Moment) -> Range<Int> { places[Int(moment.ordinal)] }

  private func hasRules(at moment: Moment) -> Bool { !place(of: moment).isEmpty }

  func look(at rule: PreparedRule, _ reading: inout Reading, now: Int64) -> RuleLook {
    if let push = reading.traffic.push, rule.refuses(isAccepted: push.verdict.isAccepted) { return .refused }
    if let miss = rule.condition.miss(&reading) { return .missed(miss) }
    let trigger = rule.rule.trigger
    if let streams = trigger.afterStreams, reading.traffic.connection.streamsOpened < streams {
      return .stopped(.afterStreams)
    }
    var opening: Int64 = 0
    let elapsed = now &- rule.activatedAt
    if let window = trigger.window {
      guard let begin = window.opening(at: elapsed) else { return .stopped(.window) }
      opening = begin
    }
    return .met(candidate(rule, &reading, opening: opening, elapsed: elapsed, now: now))
  }

  private func candidate(
    _ rule: PreparedRule, _ reading: inout Reading, opening: Int64, elapsed: Int64, now: Int64
  ) -> Candidate {
    let trigger = rule.rule.trigger
    var candidate = Candidate(
      opening: rule.activatedAt &+ opening, countKey: 0, rateKey: 0, drawKey: .text(""), ordinal: 0, now: now)
    if trigger.counts || trigger.times != nil { candidate.countKey = reading.hash(of: trigger.countKey) }
    if let key = trigger.overLimit?.key { candidate.rateKey = reading.hash(of: key) }
    candidate.probability = trigger.probability?.value(at: elapsed)
    let isDrawn = candidate.probability.map { $0 > 0 && $0 < 1 } ?? false
    guard isDrawn || rule.drawsForAction else { return candidate }
    candidate.drawKey = reading.drawKey(of: trigger.drawKey)
    if trigger.drawKey == .attempt {
      // Without a push, each opening of the window counts as an attempt.
      candidate.ordinal = reading.traffic.push?.attempt ?? trigger.window?.ordinal(of: opening) ?? 0
    }
    if isDrawn { candidate.draw = Draw(rule.draws, key: candidate.drawKey, ordinal: candidate.ordinal).number }
    return candidate
  }
}

extension Int64 {
  /// Returns the sum, or `Int64.max` on overflow.
  fileprivate func saturatingAdd(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }
}

extension Trigger.Probability {
  /// Returns the probability, from 0 to 1, at `elapsed` nanoseconds after activation.
  func value(at elapsed: Int64) -> Double {
    switch self {
    case .fixed(let number): return number
    case .ramp(let from, let to, let over):
      let whole = Double(over.nanoseconds)
      guard Double(elapsed) < whole else { return to }
      return from + (to - from) * max(0, Double(elapsed)) / whole
    }
  }
}

extension Moment {
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
