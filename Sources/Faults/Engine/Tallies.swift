internal import NIOConcurrencyHelpers

/// What the rules have counted. Any thread may use it; one lock, taken once for each decision.
public final class Tallies: Sendable {
  fileprivate struct State: Sendable {
    var tallies: [Int: RuleTally] = [:]
    /// The slots of the rules in force: ad-hoc rules first, each in the order of the plan.
    var slots: [Identity: Int] = [:]
    var order: [Int] = []
    var nextSlot = 0
    /// How many pushes are held.
    var held = 0
    /// For each magic device token how often it came.
    var magic = KeyedTable<Int>()
    /// What came of each kind of magic device token.
    var magicTallies: [MagicToken.Code: RuleTally.Count] = [:]
    var injections = InjectionCounts()
  }

  fileprivate struct Identity: Hashable {
    var profile: String?
    var name: String
    /// Which of several with that name.
    var occurrence: Int
  }

  private let state = NIOLockedValueBox(State())

  /// Nothing counted.
  public init() {}

  // MARK: - Rules in force

  /// Keeps the counters of rules that stay as they are, begins those of others, drops the rest.
  ///
  /// - Returns: for each rule where its counters are, in the same order.
  func adopt(_ rules: [(rule: Rule, profile: String?)]) -> [(slot: Int, dismissals: Dismissals)] {
    state.withLockedValue { state in
      let earlier = state
      state.tallies = [:]
      state.slots = [:]
      let counters = rules.map { rule, profile in
        var identity = Identity(profile: profile, name: rule.name, occurrence: 0)
        while state.slots[identity] != nil { identity.occurrence += 1 }
        let tally: RuleTally
        let slot: Int
        if let known = earlier.slots[identity], let same = earlier.tallies[known], same.rule == rule {
          (slot, tally) = (known, same)
        } else {
          (slot, tally) = (state.nextSlot, RuleTally(rule, profile: profile))
          state.nextSlot += 1
        }
        state.tallies[slot] = tally
        state.slots[identity] = slot
        return (slot: slot, dismissals: tally.dismissals)
      }
      state.order = counters.map(\.slot)
      return counters
    }
  }

  /// Forgets everything but the pushes that are held now.
  public func reset() {
    state.withLockedValue { state in
      for slot in state.order { state.tallies[slot]?.reset() }
      state.magic = KeyedTable()
      state.magicTallies = [:]
    }
  }

  /// Says that a push which an injection held is finished. To be called once for each injection with `holds`.
  public func release(_ injection: Injection) {
    guard injection.holds else { return }
    state.withLockedValue { state in
      state.held = max(0, state.held - 1)
      guard let slot = injection.slot, let active = state.tallies[slot]?.active else { return }
      state.tallies[slot]?.active = max(0, active - 1)
    }
  }

  /// How many pushes are held now.
  public var held: Int { state.withLockedValue { $0.held } }

  // MARK: - Deciding

  /// Counts that a rule fires of which a glance has said so.
  ///
  /// - Returns: false if the rule is not in force any more, because a newer plan came between.
  func fire(_ injection: Injection) -> Bool {
    state.withLockedValue { state in
      guard let slot = injection.slot, let place = state.tallies.index(forKey: slot) else { return false }
      state.tallies.values[place].countFiring()
      state.note(injection, at: place)
      return true
    }
  }

  /// Walks along rules that were looked at, until one of them ends the walk; then the magic device token has its say.
  func settle(
    _ looks: [(rule: PreparedRule, look: RuleLook)], magic: MagicToken?, in plan: FaultPlan, _ reading: inout Reading
  ) -> Decision {
    state.withLockedValue { state in
      var decision = Decision()
      for (rule, look) in looks {
        // A rule without counters is not in force any more: a newer plan came between.
        guard let place = state.tallies.index(forKey: rule.slot),
          let injection = state.tallies.values[place].settle(look, of: rule, in: plan, &reading, held: state.held)
        else { continue }
        if injection.holds { state.held += 1 }
        state.note(injection, at: place)
        decision.take(injection)
        if decision.outcome != nil { return decision }
      }
      if let magic, let injection = state.fire(magic, in: plan, &reading) {
        if injection.holds { state.held += 1 }
        _ = state.injections.add(injection)
        decision.take(injection)
      }
      return decision
    }
  }

  // MARK: - Telling

  /// What became of a rule's traffic, ad-hoc rules first; nil if no such rule is in force. The rules that magic device
  /// tokens stand for, `magic-4100` and so on, always are.
  public func explain(_ rule: String) -> RuleExplanation? {
    if let code = MagicToken.Code.allCases.first(where: { MagicToken.make(code: $0).rule == rule }) {
      let count = state.withLockedValue { $0.magicTallies[code] } ?? RuleTally.Count()
      return RuleExplanation(Rule(code), profile: nil, count: count, active: 0)
    }
    return explanations { $0.rule.name == rule }.first
  }

  /// What became of the traffic of each rule, ad-hoc rules first, each kind in the order they are looked at.
  public var explanations: [RuleExplanation] { explanations { _ in true } }

  private func explanations(_ isWanted: (RuleTally) -> Bool) -> [RuleExplanation] {
    // Only what is told leaves the lock: a copy of a whole tally would make the next decision copy its tables.
    let told = state.withLockedValue { state in
      state.order.compactMap { state.tallies[$0] }.filter(isWanted).map { ($0.rule, $0.profile, $0.told, $0.active) }
    }
    return told.map(RuleExplanation.init)
  }

  /// How often each rule did what it does, since the server started: neither a reset nor another profile takes anything
  /// back. The first 200 are told apart, further ones have the name `other`.
  public var injections: [(rule: String, action: Action.Name, count: Int)] {
    state.withLockedValue { $0.injections.all }
      .map { (rule: $0.key.rule, action: $0.key.action, count: $0.count) }
      .sorted { ($0.rule, $0.action.rawValue) < ($1.rule, $1.action.rawValue) }
  }

  /// How many keys are remembered in all.
  var remembered: Int {
    state.withLockedValue { state in state.tallies.values.reduce(state.magic.count) { $0 + $1.remembered } }
  }
}

extension Tallies.State {
  /// Counts an injection among all there were.
  ///
  /// - Parameter place: of the rule's tally.
  fileprivate mutating func note(_ injection: Injection, at place: Dictionary<Int, RuleTally>.Index) {
    tallies.values[place].note(injection, among: &injections)
  }

  fileprivate mutating func fire(
    _ token: MagicToken, in plan: FaultPlan, _ reading: inout Reading
  ) -> Injection? {
    magicTallies[token.code, default: RuleTally.Count()].looks &+= 1
    if let first = token.firstAttempts {
      let key = reading.hash(of: .deviceToken)
      let count = (magic[key] ?? 0) &+ 1
      magic[key] = count
      if count > first { return stop(token, by: .count) }
    }
    let injection = token.injection(within: plan.profile.limits)
    if injection.holds, held >= plan.profile.limits.maxActive { return stop(token, by: .profileMaxActive) }
    magicTallies[token.code]?.fired &+= 1
    return injection
  }

  private mutating func stop(_ token: MagicToken, by part: TriggerPart) -> Injection? {
    magicTallies[token.code]?.stops[part.rawValue] &+= 1
    return nil
  }
}

extension Decision {
  fileprivate mutating func take(_ injection: Injection) {
    if injection.continues { additions.append(injection) } else { outcome = injection }
  }
}

extension Rule {
  /// The rule that magic device tokens of one kind stand for, as far as an explanation needs it.
  fileprivate init(_ code: MagicToken.Code) {
    self.init(name: MagicToken.make(code: code).rule, action: .pass)
  }
}
