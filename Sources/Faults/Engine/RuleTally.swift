/// The counters of one rule. Protected by the lock of `Tallies`.
struct RuleTally {
  let rule: Rule
  let profile: String?
  private var count = Count()
  /// The last action and its index in `InjectionCounts`, which saves a lookup by name.
  private var countedAt: (action: Action.Name, place: Int)?
  /// The counters that event loops update without the lock.
  let dismissals: Dismissals
  /// The number of pushes that the rule currently holds.
  var active = 0

  private var matched = KeyedTable<Int>()
  private var injected = KeyedTable<Int>()
  private var buckets = RateBuckets()
  private var positions = KeyedTable<Int>()
  private var openings = KeyedTable<Int64>()

  /// The counts that an explanation shows.
  struct Count {
    var looks = 0
    var fired = 0
    var refused = 0
    /// For each test, the number of times it was the first to fail.
    var misses: [Int] = []
    var seen: [SeenValues] = []
    var excepted = 0
    /// For each part of the trigger, the number of times it prevented firing.
    var stops = [Int](repeating: 0, count: TriggerPart.allCases.count)
  }

  init(_ rule: Rule, profile: String?, dismissals: Dismissals = Dismissals()) {
    self.rule = rule
    self.profile = profile
    self.dismissals = dismissals
    count.misses = [Int](repeating: 0, count: rule.condition.tests.count)
    count.seen = [SeenValues](repeating: SeenValues(), count: rule.condition.tests.count)
  }

  /// Resets all counters except the number of held pushes.
  mutating func reset() {
    let active = active
    dismissals.reset()
    self = RuleTally(rule, profile: profile, dismissals: dismissals)
    self.active = active
  }

  /// All counts, including those of `dismissals`.
  var told: Count { dismissals.added(to: count) }

  /// The number of keys that all tables keep.
  var remembered: Int {
    matched.count + injected.count + buckets.count + positions.count + openings.count
  }

  /// Counts an injection of the rule in the totals.
  mutating func note(_ injection: Injection, among injections: inout InjectionCounts) {
    if let countedAt, countedAt.action == injection.action.name {
      injections.add(at: countedAt.place)
    } else {
      countedAt = (injection.action.name, injections.add(injection))
    }
  }

  /// Counts that the rule fired.
  mutating func countFiring() {
    count.looks &+= 1
    count.fired &+= 1
  }

  /// Counts the result of an evaluation and returns the injection; nil if the rule does not fire.
  mutating func settle(
    _ look: RuleLook, of prepared: PreparedRule, in plan: FaultPlan, _ reading: inout Reading, held: Int
  ) -> Injection? {
    count.looks &+= 1
    switch look {
    case .refused: count.refused &+= 1
    case .missed(.exception): count.excepted &+= 1
    case .missed(.test(let index, let seen)):
      count.misses[index] &+= 1
      count.seen[index].add(seen, of: rule.condition.tests[index].subject)
    case .stopped(let part): count.stops[part.rawValue] &+= 1
    case .met(let candidate):
      do throws(TriggerPart) {
        let injection = try fire(candidate, of: prepared, in: plan, &reading, held: held)
        count.fired &+= 1
        return injection
      } catch {
        count.stops[error.rawValue] &+= 1
      }
    }
    return nil
  }

  private mutating func fire(
    _ candidate: Candidate, of prepared: PreparedRule, in plan: FaultPlan, _ reading: inout Reading, held: Int
  ) throws(TriggerPart) -> Injection {
    let trigger = rule.trigger
    if rule.moment == .connection {
      try takeChance(on: reading.traffic.connection.number, opening: candidate.opening)
    }
    // Check the draw before the attempt number, which is counted elsewhere: most pushes end here.
    if trigger.countKey == .push, trigger.overLimit == nil, reading.traffic.push != nil, !candidate.isDrawn {
      throw .probability
    }
    if trigger.counts { try checkCount(candidate, attempt: reading.traffic.push?.attempt) }
    if let rate = trigger.overLimit, buckets.admit(candidate.rateKey, rate: rate, now: candidate.now) {
      throw .overLimit
    }
    if !candidate.isDrawn { throw .probability }
    let before = trigger.times == nil ? 0 : injected[candidate.countKey] ?? 0
    if let times = trigger.times, before >= times { throw .times }
    var resolution = ActionResolution(candidate: candidate, rule: prepared, plan: plan)
    let action = try resolution.resolve(rule.action, positions, &reading)
    if action.holds {
      if let limit = trigger.maxActive, active >= limit { throw .maxActive }
      if held >= plan.profile.limits.maxActive { throw .profileMaxActive }
      active += 1
    }
    for (key, position) in resolution.next { positions[key] = position }
    if trigger.times != nil { injected[candidate.countKey] = before &+ 1 }
    return Injection(
      Injection.Deed(prepared.rule, profile: prepared.profile, doing: action, slot: prepared.slot),
      Injection.Chance(draw: candidate.draw, probability: candidate.probability, ordinal: candidate.ordinal))
  }

  private mutating func takeChance(on connection: UInt64, opening: Int64) throws(TriggerPart) {
    let key = connection.hashValue
    let taken = openings[key]
    // Set even if unchanged, which marks the connection as recently used.
    openings[key] = opening
    if taken == opening { throw .once }
  }

  private mutating func checkCount(_ candidate: Candidate, attempt: Int?) throws(TriggerPart) {
    let trigger = rule.trigger
    let number: Int
    if trigger.countKey == .push, let attempt {
      number = attempt
    } else {
      number = (matched[candidate.countKey] ?? 0) &+ 1
      matched[candidate.countKey] = number
    }
    if !trigger.lets(number) { throw .count }
  }
}
