import FaultModel
internal import APNSRules
internal import Notation

/// Builds a profile from a text, the texts it extends and the values of its parameters.
struct ProfileBuilder {
  /// The maximum number of rules in a profile: each may be evaluated for every push and is compared with all others
  /// once.
  static let ruleLimit = 1000

  let problems = ProblemList()
  private let parameters = ParameterSet()
  private let find: (String) -> ProfileSource?
  private let names: [String]
  private var layers: [ProfileLayer] = []

  /// - Parameters:
  ///   - names: The names of all profiles, for hints.
  ///   - find: Returns the text of a base profile by its name.
  init(names: [String], find: @escaping (String) -> ProfileSource?) {
    self.names = names
    self.find = find
  }

  /// Builds the profile of a text, or returns nil if there are errors. Afterwards, `problems` has all errors and
  /// warnings.
  ///
  /// - Parameter values: Values of its parameters as written; the others have their defaults.
  mutating func profile(of source: ProfileSource, values: [String: String] = [:]) -> Profile? {
    var path: [String] = []
    guard addLayer(source, extended: &path) else { return nil }
    defineParameters()
    apply(values, to: source)
    var profile = Profile(name: layers.first?.name ?? source.name)
    // Begin with the last base, so that each text overrides what it extends.
    for layer in layers.reversed() { layer.readHeader(into: &profile) }
    var placed: [PlacedRule] = []
    for layer in layers { add(layer.rules(), to: &placed) }
    warnAboutUnusedParameters()
    profile.parameters = parameters.order.compactMap { parameters.all[$0]?.parameter }
    profile.rules = placed.map(\.rule)
    check(placed, profile)
    return problems.hasErrors ? nil : profile
  }

  // MARK: - Bases

  /// Adds a text and all texts it extends. Returns false if its structure is unreadable.
  private mutating func addLayer(_ source: ProfileSource, extended path: inout [String]) -> Bool {
    guard let root = ProfileFileReader.root(of: source.text, file: source.file, problems: problems) else {
      return false
    }
    let reading = ProfileParser(file: source.file, problems: problems, parameters: parameters)
    guard let map = reading.map(ProfileParser.Located(node: root, path: ""), ProfileKey.self) else { return false }
    let layer = ProfileLayer(source: source, reading: reading, map: map)
    layers.append(layer)
    path.append(layer.name)
    defer { path.removeLast() }
    guard let extends = map[.extends] else { return true }
    for place in reading.listOrOne(extends) ?? [] {
      guard let name = reading.text(place, pluralName: "names") else { continue }
      if let start = path.firstIndex(of: name) {
        reading.fail(place, "circular reference: \((path[start...] + [name]).joined(separator: " → "))")
      } else if layers.contains(where: { $0.name == name }) {
        continue  // Two bases share this base: add its rules once.
      } else if layers.count >= 32 {
        reading.fail(place, "more than 32 profiles extend each other")
      } else if let base = find(name) {
        _ = addLayer(base, extended: &path)
      } else {
        reading.fail(
          place, "unknown profile \"\(name.shortened)\"", hint: ProfileParser.guess(name, among: names))
      }
    }
    return true
  }

  /// Appends the rules of one text.
  private func add(_ rules: [PlacedRule], to placed: inout [PlacedRule]) {
    let known = placed.reduce(into: [String: PlacedRule]()) { $0[$1.rule.name] = $1 }
    var own: [String: PlacedRule] = [:]
    for rule in rules {
      if let twin = own[rule.rule.name] {
        problems.add(
          ProfileProblem(
            file: rule.file, at: rule.position, path: rule.path,
            "there is a rule \"\(rule.rule.name)\" above already, in line \(twin.position.line)",
            hint: "rename it"))
        continue
      }
      own[rule.rule.name] = rule
      // A rule of a profile that extends this one replaces it.
      if known[rule.rule.name] == nil { placed.append(rule) }
    }
    if placed.count > Self.ruleLimit, let last = placed.last {
      problems.add(
        ProfileProblem(file: last.file, at: last.position, path: last.path, "more than \(Self.ruleLimit) rules"))
      placed.removeLast(placed.count - Self.ruleLimit)
    }
  }

  // MARK: - Parameters

  private func defineParameters() {
    var drafts: [String: ParameterDeclaration] = [:]
    var order: [String] = []
    for layer in layers {
      for draft in layer.map[.params].map(layer.reading.parameterDeclarations(in:)) ?? [] {
        if drafts[draft.name] == nil { order.append(draft.name) }
        drafts[draft.name] = drafts[draft.name]?.completed(by: draft) ?? draft
      }
    }
    for name in order { drafts[name].map { parameters.define($0.makeEntry()) } }
  }

  private func apply(_ values: [String: String], to source: ProfileSource) {
    for (name, value) in values.sorted(by: { $0.key < $1.key }) {
      let path = "params.\(name.shortened)"
      guard let entry = parameters.all[name] else {
        let hint =
          ProfileParser.guess(name, among: parameters.order)
          ?? (parameters.order.isEmpty
            ? "it has none" : "the parameters are \(parameters.order.joined(separator: ", "))")
        problems.add(ProfileProblem(file: source.name, path: path, "unknown parameter", hint: hint))
        continue
      }
      guard !entry.isBroken else { continue }
      if let problem = entry.parameter.problem(with: value) {
        problems.add(ProfileProblem(file: source.name, path: path, problem))
        parameters.change(name) { $0.isBroken = true }
      } else {
        parameters.change(name) { $0.parameter.value = value }
      }
    }
  }

  private func warnAboutUnusedParameters() {
    guard !problems.hasErrors else { return }
    for name in parameters.order {
      guard let entry = parameters.all[name], !entry.isUsed else { continue }
      problems.add(
        ProfileProblem(
          .warning, file: entry.file, at: entry.position, path: entry.path, "this parameter is not used",
          hint: "use it as \"${\(name)}\""))
    }
  }

  // MARK: - Rules together

  private func check(_ placed: [PlacedRule], _ profile: Profile) {
    for (index, later) in placed.enumerated() {
      if let earlier = placed[..<index].first(where: { $0.rule.shadows(later.rule) }) {
        problems.add(
          ProfileProblem(
            .warning, file: later.file, at: later.position, path: later.path,
            "never evaluated: \"\(earlier.rule.name)\" in line \(earlier.position.line) matches everything before it",
            hint: "move it up, or add a when to the other rule"))
      }
      checkAge(later, profile)
      checkHold(later, profile)
    }
  }

  /// Warns if a push would be held longer than the profile allows.
  private func checkHold(_ placed: PlacedRule, _ profile: Profile) {
    let most = profile.limits.maxHold
    guard placed.rule.action.leaves.contains(where: { $0.longestHold > most }) else { return }
    problems.add(
      ProfileProblem(
        .warning, file: placed.file, at: placed.position, path: placed.path + ".\(RuleKey.action.rawValue)",
        "a push is delayed at most \(DurationFormat.text(most))", hint: "raise limits: {max_hold: …}"))
  }

  /// Warns if a rule is for provider tokens that APNs would already have rejected.
  private func checkAge(_ placed: PlacedRule, _ profile: Profile) {
    let rule = placed.rule
    guard rule.injectionPoint == .request, rule.stage == .afterValidation,
      let limit = DurationFormat.duration(profile.settings[.tokenMaxAge] ?? "1h")?.inSeconds
    else { return }
    for test in rule.condition.tests where test.subject == .tokenAge {
      guard case .between(let above?, _) = test.match, above >= limit else { continue }
      problems.add(
        ProfileProblem(
          .warning, file: placed.file, at: placed.position, path: placed.path + ".when.jwt.age",
          "this never fires: provider tokens older than \(profile.settings[.tokenMaxAge] ?? "1h") are rejected before",
          hint: "raise apns: {token_max_age: …}, or use stage: before_validation"))
    }
  }
}

extension Action {
  /// The maximum time the action may hold a push, if specified.
  fileprivate var longestHold: Duration {
    switch self {
    case .delay(.fixed(let length)), .hang(let length?, _): length
    case .delay(.uniform(_, let max)), .delay(.lognormal(_, _, let max)): max
    default: .zero
    }
  }
}
