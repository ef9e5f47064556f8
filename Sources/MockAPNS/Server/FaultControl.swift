import APNSMockRules
package import APNSMockFaultModel
package import APNSMockFaults
import APNSMockInbox
import Logging
import NIOConcurrencyHelpers
package import APNSMockNotation
import Synchronization

/// The active fault profile and rules, which can be changed while the server runs.
///
/// Each change publishes a new `ActivePolicy`, which applies to all connections from their next push on.
package final class FaultControl: Sendable {
  /// A rule that was added to those of the profile.
  package struct AddedRule: Sendable {
    /// The added rule.
    package let rule: Rule
    /// When the rule was added, in monotonic nanoseconds.
    package let addedAt: MonotonicTime
    /// When the rule expires, in monotonic nanoseconds; nil for never.
    package let endsAt: MonotonicTime?
    /// The pushes that the rule is limited to.
    package var binding = RuleBinding.all
    /// The reference of the profile that was bound to these pushes; nil for a rule that was added alone.
    package var profile: String?
  }

  /// The available profiles.
  package let library: PublishedValue<ProfileLibrary>
  /// The published APNs rules and faults, read by the connections.
  let activePolicy: PublishedValue<ActivePolicy>

  private struct State {
    var selection: FaultSelection
    var expiry: Task<Void, Never>?
    var folderProblems: [ProfileProblem] = []
    var usedNames = FaultNames.magicTokens
    /// The names in the library; nil until first requested.
    var libraryNames: FaultNames?
  }

  private let state: NIOLockedValueBox<State>
  /// The profile, with its parameters, and the seed that the server started with.
  private let initialSelection: (selectedProfile: SelectedProfile, seed: UInt64)
  /// The counters of the rules.
  package let counters: RuleCounters
  private let generatedNames = Atomic<Int>(0)
  private let configuration: MockServer.Configuration
  private let seed: UInt64
  private let connections: Connections
  private let events: EventLog
  let logger: Logger

  init(
    configuration: MockServer.Configuration, seed: UInt64, connections: Connections, events: EventLog, logger: Logger
  ) {
    self.events = events
    self.configuration = configuration
    counters = RuleCounters(areStored: configuration.recordWriter != nil)
    self.seed = seed
    self.connections = connections
    self.logger = logger
    library = PublishedValue(configuration.profiles)
    let selectedProfile = configuration.profile ?? Self.healthy(in: configuration.profiles)
    initialSelection = (selectedProfile, configuration.seed ?? selectedProfile.profile.seed ?? seed)
    let selection = FaultSelection(initialSelection.selectedProfile, seed: initialSelection.seed)
    state = NIOLockedValueBox(State(selection: selection))
    activePolicy = PublishedValue(
      Self.activePolicy(selection, configuration: configuration, ruleCounters: counters, before: nil))
    // Schedules the profile's end.
    change { _ in }
  }

  // MARK: - Names

  /// The names of profiles and rules that were active since the start, also of those that were removed.
  package var usedNames: FaultNames { state.withLockedValue { $0.usedNames } }

  /// The names of all profiles in the library, and of their rules.
  package var libraryNames: FaultNames {
    if let names = state.withLockedValue({ $0.libraryNames }) { return names }
    // Computed within an update of the library, so that the library cannot change between reading and storing the
    // names.
    return library.update { library in
      let names = library.faultNames
      state.withLockedValue { $0.libraryNames = names }
      return names
    }
  }

  private func invalidateLibraryNames() { state.withLockedValue { $0.libraryNames = nil } }

  /// Returns the profile without faults: the library's `healthy`, or an empty one if a user's file of that name is
  /// invalid.
  private static func healthy(in library: ProfileLibrary) -> SelectedProfile {
    let source = library.source(named: "healthy") ?? ProfileSource(name: "healthy", text: "", origin: .builtIn)
    let profile = try? library.profile(of: source).profile
    return SelectedProfile(source: source, profile: profile ?? Profile(name: source.name))
  }

  /// The current selection.
  package var selection: FaultSelection { state.withLockedValue { $0.selection } }

  // MARK: - Profile

  /// Activates a profile; added rules stay.
  ///
  /// - Parameters:
  ///   - seed: The seed of the draws; nil for the configured one, otherwise the profile's, otherwise the server's.
  ///   - timeToLive: The time after which `healthy` is active again; nil for never, or for as long as the profile
  ///     specifies. The shorter of the two applies.
  package func use(_ selectedProfile: SelectedProfile, seed: UInt64? = nil, timeToLive: Duration? = nil) {
    let activeSeed = change { selection in
      activate(selectedProfile, seed: seed, timeToLive: timeToLive, in: &selection)
      selection.isChanged = true
      return selection.seed
    }
    logger.notice("profile \(selectedProfile.profile.name) active, seed \(activeSeed)")
  }

  /// Makes a profile the active one of a selection, from now on.
  private func activate(
    _ selectedProfile: SelectedProfile, seed: UInt64? = nil, timeToLive: Duration? = nil,
    in selection: inout FaultSelection
  ) {
    selection.activate(
      selectedProfile, seed: seed ?? configuration.seed ?? selectedProfile.profile.seed ?? self.seed,
      timeToLive: timeToLive)
  }

  /// Activates `healthy` instead of the active profile; added rules stay.
  package func useHealthy() {
    use(Self.healthy(in: library.load()))
  }

  /// Restores the profile the server started with, its parameters and its seed, and resumes fault injection. Rules
  /// that were added stay.
  package func restoreProfile() {
    let isChanged = change { selection in
      let isChanged =
        selection.selectedProfile != initialSelection.selectedProfile || selection.seed != initialSelection.seed
        || selection.isPaused
      selection.activate(initialSelection.selectedProfile, seed: initialSelection.seed)
      (selection.isPaused, selection.isChanged) = (false, false)
      return isChanged
    }
    if isChanged {
      logger.notice("profile \(initialSelection.selectedProfile.reference) restored, seed \(initialSelection.seed)")
    }
  }

  /// Sets parameters of the active profile. Rules that do not change keep their counters.
  ///
  /// - Throws: `ProfileFailure` for a parameter that does not exist or an invalid value.
  package func setParameters(_ parameters: [String: String]) throws(ProfileFailure) {
    let updated = try updateSelectedProfile(isChange: true) { current throws(ProfileFailure) in
      let values = current.profile.changedParameters.merging(parameters) { $1 }
      let loaded = try library.load().profile(of: current.source, parameters: values)
      return SelectedProfile(source: current.source, profile: loaded.profile)
    }
    let list = parameters.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: ", ")
    logger.notice("profile \(updated.profile.name): \(list)")
  }

  /// Adds the rules of a profile for the pushes of a binding, instead of those of the profile that was bound to them before. They
  /// are evaluated before the rules of the active profile.
  ///
  /// - Returns: Whether they are added: not if there would be more than `ruleLimit` rules.
  /// - Throws: `FilterError` if the profile changes more than the responses to these pushes.
  package func use(
    _ selectedProfile: SelectedProfile, boundTo binding: RuleBinding, timeToLive: Duration?
  ) throws(FilterError) -> Bool {
    let profile = selectedProfile.profile
    guard profile.settings.isEmpty, profile.pushIdentity == .content else {
      throw FilterError(
        field: "name", value: profile.name,
        hint: "It has apns or push_key, which apply to all pushes: omit scope and run, or use another profile.")
    }
    for rule in profile.rules { try binding.check(rule) }
    let now = MachineTime.nanoseconds
    let end = [timeToLive, profile.stopAfter].compactMap(\.self).min().map { now.addingClamped($0.nanoseconds) }
    return change { selection in
      let others = selection.added.filter { !$0.isOfProfile(scope: binding.scope, run: binding.run) }
      guard others.count + profile.rules.count <= Self.ruleLimit else { return false }
      var names = Set(others.map(\.rule.name))
      let rules = profile.rules.map { rule in
        var rule = rule
        let name = "\(profile.name)-\(rule.name)"
        let candidates = [String(name.prefix(64))] + (2...Self.ruleLimit + 1).lazy.map { "\(name.prefix(58))-\($0)" }
        rule.name = candidates.first { names.insert($0).inserted } ?? name
        return AddedRule(
          rule: rule, addedAt: now, endsAt: end, binding: binding, profile: selectedProfile.reference)
      }
      selection.added = rules + others
      return true
    }
  }

  /// Removes the rules of the profile that is bound to a scope, a run, or both.
  package func removeProfile(scope: String?, run: String?) {
    change { $0.added.removeAll { $0.isOfProfile(scope: scope, run: run) } }
  }

  /// Removes the rules that are bound to this scope.
  func removeRules(scope: String) {
    guard selection.added.contains(where: { $0.binding.scope == scope }) else { return }
    change { $0.added.removeAll { $0.binding.scope == scope } }
  }

  /// Whether rules are bound to a run.
  package func hasRules(ofRun id: String) -> Bool { selection.added.contains { $0.binding.run == id } }

  /// Removes the rules of runs that have ended, and suspends those of runs to which no push can belong now.
  ///
  /// - Parameter runs: Returns the `id`s of the open runs, and of those to which pushes can belong. Called with the rules
  ///   locked, so that an older state never replaces a newer one.
  func follow(_ runs: () -> (all: Set<String>, owning: Set<String>)) {
    guard selection.added.contains(where: { $0.binding.run != nil }) else { return }
    change { selection in
      let open = runs()
      selection.added.removeAll { $0.binding.run.map { !open.all.contains($0) } ?? false }
      selection.suspendedRuns = open.all.subtracting(open.owning)
    }
  }

  // MARK: - Library

  /// Reloads the profile folder and with it the active profile, including one that was loaded from a file.
  ///
  /// - Returns: The problems found. Where a file is invalid, its previous content stays active.
  @discardableResult
  package func reload() -> [ProfileProblem] {
    let problems = library.update { library in
      let reading = configuration.profilesFolder.map { library.reloading(folder: $0) }
      var problems = reading?.problems ?? []
      do throws(ProfileFailure) {
        try rebuildActiveProfile(from: library, to: reading?.library ?? library, readingFileAgain: true)
      } catch {
        problems += error.problems.filter { !problems.contains($0) }
      }
      library = reading?.library ?? library
      invalidateLibraryNames()
      return problems
    }
    state.withLockedValue { $0.folderProblems = problems }
    for problem in problems {
      logger.log(level: problem.severity == .error ? .error : .warning, "\(problem)")
    }
    logger.notice("profiles reloaded")
    return problems
  }

  /// The problems found when the profile folder was last reloaded.
  package var folderProblems: [ProfileProblem] { state.withLockedValue { $0.folderProblems } }

  /// Stores a profile in the library. The active profile is updated at once if it is the stored one or extends it.
  ///
  /// - Returns: The profile with its defaults, and whether its name is new.
  /// - Throws: `ProfileFailure` if the text is invalid, or if the active profile would become invalid. Then nothing
  ///   changes.
  package func store(name: String, text: String) throws(ProfileFailure) -> (loaded: LoadedProfile, isNew: Bool) {
    try changeLibrary(name) { library throws(ProfileFailure) in
      let isNew = library.source(named: name) == nil
      let (changed, loaded) = try library.adding(name: name, text: text)
      return (changed, (loaded, isNew))
    }
  }

  /// Removes a stored profile from the library; a profile that it replaced is available again.
  ///
  /// - Throws: `ProfileFailure` if it was not stored, or if the active profile would become invalid. Then nothing
  ///   changes.
  package func removeProfile(_ name: String) throws(ProfileFailure) {
    try changeLibrary(name) { library throws(ProfileFailure) in (try library.removing(name: name), ()) }
  }

  /// Replaces the library by one with another profile of this name, and the active profile if it differs there.
  private func changeLibrary<Result>(
    _ name: String, _ make: (ProfileLibrary) throws(ProfileFailure) -> (ProfileLibrary, Result)
  ) throws(ProfileFailure) -> Result {
    let result = library.update { library in
      Swift.Result { () throws(ProfileFailure) in
        let (changed, result) = try make(library)
        try rebuildActiveProfile(from: library, to: changed)
        library = changed
        invalidateLibraryNames()
        configuration.recordWriter?.serverState.didChange(Self.profileRows + name)
        return result
      }
    }
    return try result.get()
  }

  /// Rebuilds the active profile if it differs in the new library.
  private func rebuildActiveProfile(
    from old: ProfileLibrary, to new: ProfileLibrary, readingFileAgain: Bool = false
  ) throws(ProfileFailure) {
    try updateSelectedProfile { current throws(ProfileFailure) in
      var source = current.source
      // A profile given as a text or a file only shares its name with one of the library.
      if old.source(named: source.name) == source {
        source = new.source(named: source.name) ?? source
      } else if readingFileAgain, case .file(let path) = source.origin {
        source = try ProfileLibrary.file(path)
      }
      let loaded = try new.profile(of: source, parameters: current.profile.changedParameters)
      return SelectedProfile(source: source, profile: loaded.profile)
    }
  }

  /// Replaces the active profile by one made from it. Making it can take long, so it happens without the lock; if
  /// the active profile changes concurrently, it is made again.
  ///
  /// - Parameter isChange: Whether a command or request has set the profile or its parameters.
  @discardableResult
  private func updateSelectedProfile(
    isChange: Bool = false, _ make: (SelectedProfile) throws(ProfileFailure) -> SelectedProfile
  ) throws(ProfileFailure) -> SelectedProfile {
    while true {
      let current = selection.selectedProfile
      let made = try make(current)
      if made == current { return made }
      let isDone = change { selection in
        guard selection.selectedProfile == current else { return false }
        selection.selectedProfile = made
        selection.isChanged = selection.isChanged || isChange
        return true
      }
      if isDone { return made }
    }
  }

  // MARK: - Added rules

  /// The maximum number of added rules: each of them is evaluated for each push.
  package static let ruleLimit = 1000

  /// Parses a rule in YAML or JSON. A rule without a name gets one that no other rule has.
  ///
  /// - Throws: `ProfileFailure` with all problems.
  package func parseRule(_ text: String) throws(ProfileFailure) -> AddedRuleDefinition {
    let definition = try AddedRuleDefinition.parse(text)
    return definition.isNamed ? definition : try AddedRuleDefinition.parse(text, defaultName: nextRuleName())
  }

  /// Adds a rule, or replaces the one with its name.
  @discardableResult
  package func add(_ rule: Rule, boundTo binding: RuleBinding = .all, timeToLive: Duration?) -> InsertionResult {
    let now = MachineTime.nanoseconds
    let added = AddedRule(
      rule: rule, addedAt: now, endsAt: timeToLive.map { now.addingClamped($0.nanoseconds) }, binding: binding)
    return change { selection in
      let index = selection.added.firstIndex { $0.rule.name == rule.name }
      guard index != nil || selection.added.count < Self.ruleLimit else { return .limitReached }
      if let index { selection.added.remove(at: index) }
      selection.added.insert(added, at: 0)
      return index == nil ? .added : .replaced
    }
  }

  /// Returns a name for a rule without one. No other active rule has it, nor any rule named by this function before.
  private func nextRuleName() -> String {
    let current = selection
    let usedNames = Set(current.added.map(\.rule.name) + current.profile.rules.map(\.name))
    while true {
      let name = "rule-\(generatedNames.add(1, ordering: .relaxed).newValue)"
      if !usedNames.contains(name) { return name }
    }
  }

  /// Removes the added rule of this name.
  ///
  /// - Returns: Whether there was one.
  @discardableResult
  package func removeRule(_ name: String) -> Bool {
    change { selection in
      let before = selection.added.count
      selection.added.removeAll { $0.rule.name == name }
      return selection.added.count < before
    }
  }

  /// Removes all added rules.
  package func removeRules() {
    change { $0.added = [] }
  }

  // MARK: - Profile and rules together

  /// Pauses or resumes fault injection; the active profile and rules are kept.
  package func setPaused(_ isPaused: Bool) {
    change { ($0.isPaused, $0.isChanged) = (isPaused, true) }
    logger.notice(isPaused ? "fault injection paused" : "fault injection resumed")
  }

  /// Resets the counters of all rules, including those that draws by attempt use.
  package func resetCounters() {
    counters.reset()
    // Restart the windows and ramps of the profile's rules.
    change { $0.activatedAt = MachineTime.nanoseconds }
  }

  /// The profile and the seed that the server was started with, for people.
  var initialDescription: String {
    "the profile \(initialSelection.selectedProfile.reference) and the seed \(initialSelection.seed)"
  }

  /// The number of rules that have got a name.
  var generatedNameCount: Int { generatedNames.load(ordering: .relaxed) }

  /// Continues with rules and a selection from a store.
  func restore(_ rules: [AddedRule], generatedNames: Int, _ change: (inout FaultSelection) -> Void) {
    // At most so many that the next ones are no overflow, whatever the store contains.
    self.generatedNames.max(min(generatedNames, 1 << 48), ordering: .relaxed)
    self.change { selection in
      selection.added = rules
      change(&selection)
    }
  }

  @discardableResult
  private func change<Result>(_ change: (inout FaultSelection) -> Result) -> Result {
    let (result, before, after) = state.withLockedValue { state in
      let before = state.selection
      let result = change(&state.selection)
      let selection = state.selection
      state.usedNames.add(selection.profile)
      for added in selection.added { state.usedNames.add(added.rule) }
      activePolicy.update { current in
        current = Self.activePolicy(
          selection, configuration: configuration, ruleCounters: counters, before: current)
      }
      state.expiry?.cancel()
      state.expiry = expiry(of: selection)
      return (result, before, selection)
    }
    connections.notifyRulesChanged()
    events.appendChanges(from: before, to: after)
    configuration.recordWriter?.serverState.didChange(Self.row)
    return result
  }

  /// Returns a task that waits for the first expiry of the profile or an added rule; nil if nothing expires.
  private func expiry(of selection: FaultSelection) -> Task<Void, Never>? {
    let ends = selection.added.compactMap(\.endsAt) + [selection.endsAt].compactMap(\.self)
    guard let first = ends.min() else { return nil }
    return Task { [weak self] in
      try? await Task.sleep(for: .nanoseconds(max(0, first - MachineTime.nanoseconds)))
      if !Task.isCancelled { self?.expire() }
    }
  }

  /// Removes expired items: the active profile, then added rules.
  ///
  /// Whether the profile has expired is decided under the lock, so that a profile activated concurrently stays
  /// active.
  private func expire() {
    let healthy = Self.healthy(in: library.load())
    let expired = change { selection -> String? in
      let now = MachineTime.nanoseconds
      selection.added.removeAll { $0.endsAt.map { $0 <= now } ?? false }
      guard let end = selection.endsAt, end <= now else { return nil }
      let name = selection.profile.name
      activate(healthy, in: &selection)
      return name
    }
    if let expired { logger.notice("profile \(expired) expired; profile healthy is active") }
  }

  private static func activePolicy(
    _ selection: FaultSelection, configuration: MockServer.Configuration, ruleCounters: RuleCounters,
    before: ActivePolicy?
  ) -> ActivePolicy {
    var settings = configuration.settings
    // The profile's settings were validated when it was read.
    for (setting, value) in selection.profile.settings { try? settings.set(setting, to: value) }
    let rate =
      before?.deviceRate?.rate == settings.deviceRate
      ? before?.deviceRate : settings.deviceRate.map(SharedDeviceRateLimiter.init)
    return ActivePolicy(
      rulebooks: Rulebooks(configuration: configuration, settings: settings),
      plan: FaultPlan(
        profile: selection.profile, addedRules: selection.appliedRules, seed: selection.seed,
        magicTokens: configuration.magicTokens, isPaused: selection.isPaused, activatedAt: selection.activatedAt,
        addedRulesActivatedAt: Dictionary(
          selection.added.map { ($0.rule.name, $0.addedAt) }, uniquingKeysWith: { first, _ in first }),
        ruleCounters: ruleCounters),
      deviceRate: rate)
  }
}
