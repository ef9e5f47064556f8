internal import APNSMockRules
package import APNSMockFaultModel
internal import NIOConcurrencyHelpers

/// The counters of all rules. Thread-safe: one lock, acquired once per decision.
package final class RuleCounters: Sendable {
  struct State: Sendable {
    var counters: [Int: RuleCounter] = [:]
    /// The keys of the active rules' counters; `orderedIDs` has them in the order of the plan, added rules first.
    var counterIDs: [Identity: Int] = [:]
    var orderedIDs: [Int] = []
    var nextID = 0
    /// The number of pushes currently delayed.
    var delayedPushes = 0
    /// The number of pushes for each magic device token that acts only on the first attempts.
    var magic = GenerationalCache<Int, Int>(limit: RuleCounter.keyLimit)
    /// The counters of each kind of magic device token.
    var magicTokenCounts: [MagicToken.Code: RuleCounter.Count] = [:]
    var injections = InjectionCounts()
    /// Whether a store keeps the counts.
    var areStored = false
    /// The rows of counts that do not exist any more, and may be in the store.
    var removedRows: Set<String> = []
  }

  struct Identity: Hashable {
    var profile: String?
    var name: String
    /// The index among rules with the same name.
    var occurrence: Int
  }

  let state = NIOLockedValueBox(State())

  /// Creates counters at zero.
  ///
  /// - Parameter areStored: Whether `takeChanges` returns what has changed.
  package init(areStored: Bool = false) {
    state.withLockedValue { $0.areStored = areStored }
  }

  /// Creates counters with the values of others, which then count separately.
  init(copying other: RuleCounters) {
    var copy = other.state.withLockedValue { $0 }
    copy.areStored = false
    for id in copy.counters.keys { copy.counters[id]?.detach() }
    state.withLockedValue { [copy] in $0 = copy }
  }

  // MARK: - Active rules

  /// Keeps the counters of unchanged rules, creates counters for new and changed rules and drops all others.
  ///
  /// - Returns: The key of each rule's counters and its skip counters, in the order of `rules`.
  func activate(_ rules: [(rule: Rule, profile: String?)]) -> [(counterID: Int, skipCounters: SkipCounters)] {
    state.withLockedValue { state in
      let earlier = state
      state.counters = [:]
      state.counterIDs = [:]
      let counters = rules.map { rule, profile in
        var identity = Identity(profile: profile, name: rule.name, occurrence: 0)
        while state.counterIDs[identity] != nil { identity.occurrence += 1 }
        let ruleCounter: RuleCounter
        let counterID: Int
        if let known = earlier.counterIDs[identity], let same = earlier.counters[known], same.rule == rule {
          (counterID, ruleCounter) = (known, same)
        } else {
          ruleCounter = RuleCounter(rule, profile: profile, isStored: state.areStored)
          counterID = state.nextID
          state.nextID += 1
        }
        state.counters[counterID] = ruleCounter
        state.counterIDs[identity] = counterID
        return (counterID: counterID, skipCounters: ruleCounter.skipCounters)
      }
      state.orderedIDs = counters.map(\.counterID)
      for (identity, id) in earlier.counterIDs where state.counters[id] == nil {
        guard let counter = earlier.counters[id] else { continue }
        state.removedRows.formUnion(counter.rows.map { $0.name(of: identity) })
      }
      return counters
    }
  }

  /// Resets all counters except those of the pushes currently delayed.
  package func reset() {
    state.withLockedValue { state in
      for (identity, id) in state.counterIDs {
        state.removedRows.formUnion(state.counters[id]?.rows.map { $0.name(of: identity) } ?? [])
        state.counters[id]?.reset()
      }
      state.magic = GenerationalCache(limit: RuleCounter.keyLimit)
      state.magicTokenCounts = [:]
    }
  }

  /// Releases a push that an injection delayed. Call this once for each injection with `delaysPush`.
  package func release(_ injection: Injection) {
    guard injection.delaysPush else { return }
    state.withLockedValue { state in
      state.delayedPushes = max(0, state.delayedPushes - 1)
      guard let counterID = injection.counterID, let active = state.counters[counterID]?.active else { return }
      state.counters[counterID]?.active = max(0, active - 1)
    }
  }

  /// The number of pushes currently delayed.
  package var delayedPushes: Int { state.withLockedValue { $0.delayedPushes } }

  // MARK: - Deciding

  /// Counts the firing of a rule that has the same effect on every push.
  ///
  /// - Returns: False if a newer plan has removed the rule.
  func fire(_ injection: Injection) -> Bool {
    state.withLockedValue { state in
      guard let counterID = injection.counterID, let index = state.counters.index(forKey: counterID) else {
        return false
      }
      state.counters.values[index].countFiring()
      state.count(injection, at: index)
      return true
    }
  }

  /// Fires and counts evaluated rules in order until one of them ends the evaluation; then applies the magic device
  /// token.
  func apply(
    _ evaluations: [(rule: PreparedRule, evaluation: RuleEvaluation)], magic: MagicToken?, in plan: FaultPlan,
    _ context: inout EvaluationContext
  ) -> Injections {
    state.withLockedValue { state in
      var injections: Injections = []
      for (rule, evaluation) in evaluations {
        // Without counters, the rule was removed by a newer plan.
        guard let index = state.counters.index(forKey: rule.counterID),
          let injection = state.counters.values[index].apply(
            evaluation, of: rule, in: plan, &context, delayedPushes: state.delayedPushes)
        else { continue }
        if injection.delaysPush { state.delayedPushes += 1 }
        state.count(injection, at: index)
        injections.append(injection)
        if !injection.continues { return injections }
      }
      if let magic, let injection = state.fire(magic, in: plan, &context) {
        if injection.delaysPush { state.delayedPushes += 1 }
        _ = state.injections.add(injection)
        injections.append(injection)
      }
      return injections
    }
  }

  // MARK: - Explanations

  /// Returns what happened to a rule's traffic; nil if no such rule is active. Added rules take precedence over
  /// those of the profile. The rules of magic device tokens, such as `magic-4100`, are always found.
  package func explain(_ rule: String) -> RuleExplanation? {
    if let code = MagicToken.Code.allCases.first(where: { MagicToken.make(code: $0).rule == rule }) {
      let count = state.withLockedValue { $0.magicTokenCounts[code] } ?? RuleCounter.Count()
      return RuleExplanation(Rule(code), profile: nil, count: count, active: 0)
    }
    return explanations { $0.rule.name == rule }.first
  }

  /// What happened to the traffic of each rule, added rules first, each kind in evaluation order.
  package var explanations: [RuleExplanation] { explanations { _ in true } }

  private func explanations(_ isWanted: (RuleCounter) -> Bool) -> [RuleExplanation] {
    // Copy only the counts out of the lock: copying a whole `RuleCounter` would make the next decision copy its tables.
    let counts = state.withLockedValue { state in
      state.orderedIDs.compactMap { state.counters[$0] }.filter(isWanted).map {
        ($0.rule, $0.profile, $0.allCounts, $0.active)
      }
    }
    return counts.map(RuleExplanation.init)
  }

  /// The number of injections per rule and action since the server started, unaffected by resets and profile
  /// changes. The first 200 combinations are counted separately, all others under the name `other`.
  package var injections: [(rule: String, action: Action.Name, count: Int)] {
    state.withLockedValue { $0.injections.all }
      .map { (rule: $0.key.rule, action: $0.key.action, count: $0.count) }
      .sorted { ($0.rule, $0.action.rawValue) < ($1.rule, $1.action.rawValue) }
  }

  /// The number of keys that all tables keep.
  var keyCount: Int {
    state.withLockedValue { state in state.counters.values.reduce(state.magic.count) { $0 + $1.keyCount } }
  }
}

extension RuleCounters.State {
  /// Counts an injection in the totals since the server started.
  ///
  /// - Parameter index: The index of the rule's counter.
  fileprivate mutating func count(_ injection: Injection, at index: Dictionary<Int, RuleCounter>.Index) {
    counters.values[index].count(injection, in: &injections)
  }

  fileprivate mutating func fire(
    _ token: MagicToken, in plan: FaultPlan, _ context: inout EvaluationContext
  ) -> Injection? {
    magicTokenCounts[token.code, default: RuleCounter.Count()].evaluations &+= 1
    if let first = token.firstAttempts {
      let key = context.hash(of: .deviceToken)
      let count = (magic[key] ?? 0) &+ 1
      magic[key] = count
      if count > first { return stop(token, by: .count) }
    }
    let injection = token.injection(within: plan.profile.limits)
    if injection.delaysPush, delayedPushes >= plan.profile.limits.maxActive {
      return stop(token, by: .profileMaxActive)
    }
    magicTokenCounts[token.code]?.fired &+= 1
    return injection
  }

  private mutating func stop(_ token: MagicToken, by part: TriggerPart) -> Injection? {
    magicTokenCounts[token.code]?.stops[part.rawValue] &+= 1
    return nil
  }
}

extension Rule {
  /// Creates the rule for one kind of magic device token, with only what an explanation needs.
  fileprivate init(_ code: MagicToken.Code) {
    self.init(name: MagicToken.make(code: code).rule, action: .pass)
  }
}

/// The counters of one rule. Protected by the lock of `RuleCounters`.
struct RuleCounter {
  /// The maximum number of keys in each generation of a table.
  static let keyLimit = 32_768

  let rule: Rule
  let profile: String?
  private var count = Count()
  /// The last action and its index in `InjectionCounts`, which saves a lookup by name.
  private var lastCounted: (action: Action.Name, index: Int)?
  /// The counters that event loops update without the lock.
  private(set) var skipCounters: SkipCounters
  /// The number of pushes that the rule currently delays.
  var active = 0
  /// The rows that have changed since they were last stored; nil if no store keeps them.
  private var changedRows: Set<CountRow>?
  /// The rows that may be in the store.
  private var storedRows: Set<CountRow> = []

  private var matched = GenerationalCache<Int, Int>(limit: keyLimit)
  private var injected = GenerationalCache<Int, Int>(limit: keyLimit)
  private var buckets = TokenBuckets(limit: keyLimit)
  private var positions = GenerationalCache<Int, Int>(limit: keyLimit)
  private var openings = GenerationalCache<Int, Int64>(limit: keyLimit)
  /// The counts that an explanation shows.
  struct Count {
    var evaluations = 0
    var fired = 0
    var rejectedByAPNs = 0
    /// For each test, the number of times it was the first to fail.
    var misses: [Int] = []
    var seen: [ObservedValues] = []
    var excepted = 0
    /// For each part of the trigger, the number of times it prevented firing.
    var stops = [Int](repeating: 0, count: TriggerPart.allCases.count)
  }

  init(_ rule: Rule, profile: String?, skipCounters: SkipCounters = SkipCounters(), isStored: Bool) {
    changedRows = isStored ? [] : nil
    self.rule = rule
    self.profile = profile
    self.skipCounters = skipCounters
    count.misses = [Int](repeating: 0, count: rule.condition.tests.count)
    count.seen = [ObservedValues](repeating: ObservedValues(), count: rule.condition.tests.count)
  }

  /// Resets all counters except the number of delayed pushes.
  mutating func reset() {
    let active = active
    skipCounters.reset()
    self = RuleCounter(rule, profile: profile, skipCounters: skipCounters, isStored: changedRows != nil)
    self.active = active
  }

  /// Gives a copy of the counters `skipCounters` of its own, at zero.
  mutating func detach() { skipCounters = SkipCounters() }

  /// All counts, including those of `skipCounters`.
  var allCounts: Count { skipCounters.added(to: count) }

  /// The number of keys that all tables keep.
  var keyCount: Int {
    matched.count + injected.count + buckets.count + positions.count + openings.count
  }

  /// Counts an injection of the rule in the totals.
  mutating func count(_ injection: Injection, in injections: inout InjectionCounts) {
    if let lastCounted, lastCounted.action == injection.action.name {
      injections.add(at: lastCounted.index)
    } else {
      lastCounted = (injection.action.name, injections.add(injection))
    }
  }

  /// Counts that the rule fired.
  mutating func countFiring() {
    count.evaluations &+= 1
    count.fired &+= 1
  }

  /// Counts the result of an evaluation and returns the injection; nil if the rule does not fire.
  mutating func apply(
    _ evaluation: RuleEvaluation, of prepared: PreparedRule, in plan: FaultPlan, _ context: inout EvaluationContext,
    delayedPushes: Int
  ) -> Injection? {
    count.evaluations &+= 1
    if rule.trigger.isCounting || rule.trigger.times != nil {
      changedRows?.insert(.evaluations)
      changedRows?.insert(.fired)
    }
    switch evaluation {
    case .rejectedByAPNs: count.rejectedByAPNs &+= 1
    case .missed(.exception): count.excepted &+= 1
    case .missed(.test(let index, let seen)):
      count.misses[index] &+= 1
      count.seen[index].add(seen, of: rule.condition.tests[index].subject)
    case .stopped(let part): count.stops[part.rawValue] &+= 1
    case .matched(let match):
      do throws(TriggerPart) {
        let injection = try fire(match, of: prepared, in: plan, &context, delayedPushes: delayedPushes)
        count.fired &+= 1
        return injection
      } catch {
        count.stops[error.rawValue] &+= 1
      }
    }
    return nil
  }

  private mutating func fire(
    _ match: MatchedRule, of prepared: PreparedRule, in plan: FaultPlan, _ context: inout EvaluationContext,
    delayedPushes: Int
  ) throws(TriggerPart) -> Injection {
    let trigger = rule.trigger
    if rule.injectionPoint == .connection {
      try checkOncePerConnection(on: context.traffic.connection.number, opening: match.opening)
    }
    // Check the draw before the attempt number, which is counted elsewhere: most pushes end here.
    if trigger.countKey == .push, trigger.overLimit == nil, context.traffic.push != nil, !match.passesDraw {
      throw .probability
    }
    if trigger.isCounting { try checkCount(match, attempt: context.traffic.push?.attempt) }
    if let rate = trigger.overLimit, buckets.admit(match.rateKey, rate: rate, now: match.now) {
      throw .overLimit
    }
    if !match.passesDraw { throw .probability }
    let before = trigger.times == nil ? 0 : injected[match.countKey] ?? 0
    if let times = trigger.times, before >= times { throw .times }
    var resolution = ActionResolution(match: match, rule: prepared, plan: plan)
    let action = try resolution.resolve(rule.action, positions, &context)
    if action.delaysPush {
      if let limit = trigger.maxActive, active >= limit { throw .maxActive }
      if delayedPushes >= plan.profile.limits.maxActive { throw .profileMaxActive }
      active += 1
    }
    for step in resolution.steps { set((positions[step] ?? 0) &+ 1, .steps, of: step) }
    if trigger.times != nil { set(before &+ 1, .fired, of: match.countKey) }
    return Injection(
      Injection.RuleEffect(prepared.rule, profile: prepared.profile, doing: action, counterID: prepared.counterID),
      match.drawResult)
  }

  private mutating func checkOncePerConnection(on connection: UInt64, opening: Int64) throws(TriggerPart) {
    let key = connection.hashValue
    let last = openings[key]
    // Set even if unchanged, which marks the connection as recently used.
    openings[key] = opening
    if last == opening { throw .once }
  }

  private mutating func checkCount(_ match: MatchedRule, attempt: Int?) throws(TriggerPart) {
    let trigger = rule.trigger
    let number: Int
    if trigger.countKey == .push, let attempt {
      number = attempt
    } else {
      number = (matched[match.countKey] ?? 0) &+ 1
      set(number, .matched, of: match.countKey)
    }
    if !trigger.allows(number) { throw .count }
  }

  // MARK: - Counts in a store

  /// The maximum number of rows in the store. Beyond it, those that are not in memory any more are removed from it.
  private static let rowLimit = 4 * keyLimit

  /// The rows that may be in the store.
  var rows: Set<CountRow> { storedRows.union(changedRows ?? []) }

  private subscript(row: CountRow) -> Int? {
    switch row.table {
    case .matched: matched[row.key]
    case .fired: injected[row.key]
    case .steps: positions[row.key]
    case .total: row == .evaluations ? count.evaluations : count.fired
    }
  }

  /// Sets a count that the next server continues.
  mutating func set(_ count: Int, _ table: CountRow.Table, of key: Int) {
    switch table {
    case .matched: matched[key] = count
    case .fired: injected[key] = count
    case .steps: positions[key] = count
    case .total where key == CountRow.evaluations.key: self.count.evaluations = count
    case .total: self.count.fired = count
    }
    changedRows?.insert(CountRow(table: table, key: key))
  }

  /// Returns the rows that have changed since the last call, with nil for one that is not counted any more.
  mutating func takeChangedRows() -> [(row: CountRow, count: Int?)] {
    guard var changed = changedRows, !changed.isEmpty else { return [] }
    storedRows.formUnion(changed)
    if storedRows.count > Self.rowLimit { changed.formUnion(storedRows.filter { self[$0] == nil }) }
    let rows = changed.map { (row: $0, count: self[$0]) }
    for (row, count) in rows where count == nil { storedRows.remove(row) }
    changedRows = []
    return rows
  }

  /// Continues with a stored count.
  mutating func restore(_ count: Int, _ row: CountRow) {
    set(count, row.table, of: row.key)
    changedRows?.remove(row)
    storedRows.insert(row)
  }
}
