import APNSMockFaultModel
internal import APNSMockRules
internal import APNSMockNotation

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
    for layer in layers.reversed() { layer.parseHeader(into: &profile) }
    var parsed: [LocatedRule] = []
    for layer in layers { add(layer.parseRules(), to: &parsed) }
    warnAboutUnusedParameters()
    profile.parameters = parameters.order.compactMap { parameters.all[$0]?.parameter }
    profile.rules = parsed.map(\.rule)
    check(parsed, profile)
    return problems.hasErrors ? nil : profile
  }

  // MARK: - Bases

  /// Adds a text and all texts it extends. Returns false if its structure is unreadable.
  private mutating func addLayer(_ source: ProfileSource, extended path: inout [String]) -> Bool {
    guard let root = ProfileFileReader.root(of: source.text, file: source.file, problems: problems) else {
      return false
    }
    let parser = ProfileContext.parser(file: source.file, problems: problems, parameters: parameters)
    guard let map = Profile.schema.parseKeys(SchemaNode(root: root), parser) else { return false }
    let layer = ProfileLayer(source: source, parser: parser, map: map)
    layers.append(layer)
    path.append(layer.name)
    defer { path.removeLast() }
    guard let extends = map[Profile.extendsKey] else { return true }
    for node in parser.parseListOrValue(extends) ?? [] {
      guard let name = parser.parseText(node, pluralName: "names") else { continue }
      if let start = path.firstIndex(of: name) {
        parser.fail(node, "circular reference: \((path[start...] + [name]).joined(separator: " → "))")
      } else if layers.contains(where: { $0.name == name }) {
        continue  // Two bases share this base: add its rules once.
      } else if layers.count >= 32 {
        parser.fail(node, "more than 32 profiles extend each other")
      } else if let base = find(name) {
        _ = addLayer(base, extended: &path)
      } else {
        parser.fail(
          node, "unknown profile \"\(name.shortened)\"", hint: SchemaParser.guess(name, among: names))
      }
    }
    return true
  }

  /// Appends the rules of one text.
  private func add(_ rules: [LocatedRule], to parsed: inout [LocatedRule]) {
    let known = parsed.reduce(into: [String: LocatedRule]()) { $0[$1.rule.name] = $1 }
    var own: [String: LocatedRule] = [:]
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
      if known[rule.rule.name] == nil { parsed.append(rule) }
    }
    if parsed.count > Self.ruleLimit, let last = parsed.last {
      problems.add(
        ProfileProblem(file: last.file, at: last.position, path: last.path, "more than \(Self.ruleLimit) rules"))
      parsed.removeLast(parsed.count - Self.ruleLimit)
    }
  }

  // MARK: - Parameters

  private func defineParameters() {
    var declarations: [String: ParameterDeclaration] = [:]
    var order: [String] = []
    for layer in layers {
      for declaration in layer.map[\.parameters].map(layer.parser.parseParameters) ?? [] {
        if declarations[declaration.name] == nil { order.append(declaration.name) }
        declarations[declaration.name] = declarations[declaration.name]?.completed(by: declaration) ?? declaration
      }
    }
    for name in order { declarations[name].map { parameters.define($0.makeEntry()) } }
  }

  private func apply(_ values: [String: String], to source: ProfileSource) {
    for (name, value) in values.sorted(by: { $0.key < $1.key }) {
      let path = "params.\(name.shortened)"
      guard let entry = parameters.all[name] else {
        let hint =
          SchemaParser.guess(name, among: parameters.order)
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

  private func check(_ parsed: [LocatedRule], _ profile: Profile) {
    for (index, later) in parsed.enumerated() {
      if let earlier = parsed[..<index].first(where: { $0.rule.shadows(later.rule) }) {
        problems.add(
          ProfileProblem(
            .warning, file: later.file, at: later.position, path: later.path,
            "never evaluated: \"\(earlier.rule.name)\" in line \(earlier.position.line) matches everything before it",
            hint: "move it up, or add a when to the other rule"))
      }
      checkAge(later, profile)
      checkDelay(later, profile)
    }
  }

  /// Warns if a push would be delayed longer than the profile allows.
  private func checkDelay(_ parsed: LocatedRule, _ profile: Profile) {
    let limit = profile.limits.maxDelay
    guard parsed.rule.action.leaves.contains(where: { $0.longestDelay > limit }) else { return }
    problems.add(
      ProfileProblem(
        .warning, file: parsed.file, at: parsed.position,
        path: parsed.path + "." + RuleValues.schema.name(of: \.rule.action),
        "a push is delayed at most \(DurationFormat.text(limit))", hint: "raise limits: {max_hold: …}"))
  }

  /// Warns if a rule is for provider tokens that APNs would already have rejected.
  private func checkAge(_ parsed: LocatedRule, _ profile: Profile) {
    let rule = parsed.rule
    guard rule.injectionPoint == .request, rule.stage == .afterValidation,
      let limit = DurationFormat.duration(profile.settings[.tokenMaxAge] ?? "1h")?.inSeconds
    else { return }
    for test in rule.condition.tests where test.subject == .tokenAge {
      guard case .between(let above?, _) = test.match, above >= limit else { continue }
      problems.add(
        ProfileProblem(
          .warning, file: parsed.file, at: parsed.position, path: parsed.path + ".when.jwt.age",
          "this never fires: provider tokens older than \(profile.settings[.tokenMaxAge] ?? "1h") are rejected before",
          hint: "raise apns: {token_max_age: …}, or use stage: before_validation"))
    }
  }
}

extension Action {
  /// The maximum time the action may delay a push, if specified.
  fileprivate var longestDelay: Duration {
    switch self {
    case .delay(.fixed(let length)), .hang(let length?, _): length
    case .delay(.uniform(_, let max)), .delay(.lognormal(_, _, let max)): max
    default: .zero
    }
  }
}

/// One text of a profile: its own or that of a base profile.
private struct ProfileLayer {
  let source: ProfileSource
  let parser: SchemaParser
  let map: CheckedMap<Profile>

  /// The name that the text declares; if absent, the name of its source.
  var name: String {
    guard case .scalar(let scalar)? = map[\.name]?.content, !scalar.text.isEmpty else { return source.name }
    return scalar.text
  }

  /// Parses the rules; invalid ones are left out.
  func parseRules() -> [LocatedRule] {
    guard let node = map[\.rules], !node.isEmpty, let elements = parser.parseList(node) else { return [] }
    return elements.enumerated().compactMap { parser.parseRule($1, defaultName: "rule-\($0 + 1)") }
  }

  /// Parses everything except the rules into `profile`, overriding the values from its bases.
  func parseHeader(into profile: inout Profile) {
    // A base profile's summary does not describe the profile.
    profile.summary = ""
    _ = map.parse(into: &profile)
  }
}
