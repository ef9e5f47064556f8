internal import APNSRules
internal import HTTPMessage

/// The rules in force, which never change. What they count is in `tallies`, shared between successive plans. An object,
/// because every push asks it, and to hand it on should cost little.
///
/// What a decision depends on besides: the traffic, the time it is given, and for draws the seed. Nothing is random.
public final class FaultPlan: Sendable {
  /// The profile.
  public let profile: Profile
  /// The rules in force beside the profile, newest first.
  public let adHoc: [Rule]
  /// What all draws depend on.
  public let seed: UInt64
  /// Whether magic device tokens do what they say.
  public let magicTokens: Bool
  /// Whether nothing is done at all.
  public let halted: Bool
  /// When the profile was activated, in monotonic nanoseconds.
  public let activatedAt: Int64
  /// When each ad-hoc rule was, by its name, in monotonic nanoseconds.
  public let adHocActivatedAt: [String: Int64]
  /// What is counted.
  public let tallies: Tallies

  /// The rules, those for one moment together and in the order they are looked at.
  private let rules: [PreparedRule]
  /// Where those of each moment stand.
  private let places: [Range<Int>]

  /// A plan. Making it puts it in force: `tallies` drops the counters of rules that are not in it or have changed.
  ///
  /// - Parameters:
  ///   - adHoc: newest first.
  ///   - activatedAt: monotonic nanoseconds; windows and ramps of the profile's rules count from there.
  ///   - adHocActivatedAt: the same for ad-hoc rules; one that is not in it has the profile's.
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

  /// Whether anything may be done at this moment. At `request` ask `concerns` too.
  @inline(__always)
  public func isActive(at moment: Moment) -> Bool {
    hasRules(at: moment) || moment == .request && magicTokens && !halted
  }

  /// Whether anything may be done at `request` for a push to this device token, its bytes in any case: without rules
  /// only if it is a magic one.
  public func concerns(deviceToken: UnsafeRawBufferPointer?) -> Bool {
    hasRules(at: .request) || takesMagicTokens && deviceToken.map(MagicToken.isMarked) == true
  }

  /// Whether device tokens that are marked as magic ones stand for faults now.
  public var takesMagicTokens: Bool { magicTokens && !halted }

  /// When the rules of `connection` have to be evaluated again, because a window opens or the connection reaches an age
  /// or idle time that a rule names; nil for never. Both in monotonic nanoseconds.
  public func nextLook(after now: Int64, for connection: Traffic.Connection) -> Int64? {
    rules(at: .connection).flatMap { rule -> [Int64] in
      var times = rule.condition.timesToBounds(of: connection).map { now.saturatingAdd($0) }
      if let opening = rule.rule.trigger.window?.nextOpening(after: now &- rule.activatedAt) {
        times.append(opening &+ rule.activatedAt)
      }
      return times
    }.min()
  }

  /// What the rules do. Takes one lock once at most, and none if there is nothing to count.
  ///
  /// - Parameters:
  ///   - now: monotonic nanoseconds.
  ///   - excludingOutcomes: an outcome was injected before, so only what adds to it may be.
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

  /// Fires the rule that decides about a push, if a glance at the push said all; else nil, and nothing is counted.
  public func fire(_ left: RulesLeft) -> Injection? {
    guard let chance = left.chance else { return nil }
    let injection = Injection(rules[left.first].deed, chance)
    return tallies.fire(injection) ? injection : nil
  }

  /// The same, if all that is done to the push is another answer.
  public func firePlainAnswer(_ left: RulesLeft) -> (by: Injection, answer: PlainAnswer)? {
    guard left.chance != nil, let answer = rules[left.first].deed.plainAnswer, let injection = fire(left) else {
      return nil
    }
    return (injection, answer)
  }

  /// What the rules do that are left after a glance at a push which did not say all.
  public func decide(
    _ traffic: Traffic, at moment: Moment, now: Int64, excludingOutcomes: Bool = false, among left: RulesLeft?
  ) -> Decision {
    guard isActive(at: moment) else { return Decision() }
    var reading = Reading(traffic, identity: profile.pushIdentity)
    var looks: [(rule: PreparedRule, look: RuleLook)] = []
    for rule in rules(at: moment).suffix(left?.count ?? .max) where !excludingOutcomes || rule.alwaysContinues {
      let look = look(at: rule, &reading, now: now)
      looks.append((rule, look))
      // The rules after one that surely ends the walk need no look.
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

  /// Which rules of a moment are left to ask about a push. Those that are dismissed are counted, so `decide` has to be
  /// told of it.
  ///
  /// - Parameter attempt: how often the push came until now, from 1; asked for only if a rule depends on it.
  public func rulesLeft(
    at moment: Moment, for glance: Traffic.Glance, attempt: () -> Int, now: Int64, excludingOutcomes: Bool = false
  ) -> RulesLeft {
    let place = place(of: moment)
    // By their places: a slice would be retained, once for each push.
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
      // Where there is no push yet, each opening of the window is an attempt.
      candidate.ordinal = reading.traffic.push?.attempt ?? trigger.window?.ordinal(of: opening) ?? 0
    }
    if isDrawn { candidate.draw = Draw(rule.draws, key: candidate.drawKey, ordinal: candidate.ordinal).number }
    return candidate
  }
}

extension Int64 {
  /// The sum, or the largest number if it overflows.
  fileprivate func saturatingAdd(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }
}

extension Trigger.Probability {
  /// How likely it is so long after the activation, from 0 to 1.
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
