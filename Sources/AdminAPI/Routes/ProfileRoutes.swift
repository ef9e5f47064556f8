internal import APNSMockFaultModel
internal import APNSMockFaults
internal import Hummingbird
internal import MockAPNS
internal import APNSMockNotation

/// Routes for the available fault profiles, and for checking and simulating profiles without activating them.
struct ProfileRoutes: Sendable {
  let faults: FaultControl

  var routes: [Route] {
    [
      .get("/profiles", list), .get("/profiles/:name", show), .put("/profiles/:name", set),
      .delete("/profiles/:name", remove), .post("/profiles/lint", lint), .post("/profiles/simulate", simulate),
      .post("/profiles/reload", reload),
    ]
  }

  // MARK: - Library

  private func list(_ request: Request, _ context: AdminContext) throws -> Response {
    let page = try ListPage(request)
    let library = faults.library.load()
    let names = library.names
    let (listed, next) = try page.slice(ofNames: names)
    let entries = listed.compactMap { entry($0, library) }
    let inFolder = faults.folderProblems
    let others = entries.flatMap(\.problems).filter { !inFolder.contains($0) }
    return .json { writer in
      writer.arrayMember("items") { writer in
        for entry in entries { writer.object { entry.write(to: &$0) } }
      }
      writer.member("next", next)
      writer.member("total", names.count)
      writer.arrayMember("problems") { (inFolder + others).write(to: &$0) }
    }
  }

  private func show(_ request: Request, _ context: AdminContext) throws -> Response {
    let name = context.parameters.get("name") ?? ""
    let library = faults.library.load()
    guard let entry = entry(name, library) else {
      throw Problem.unknownProfile(name, library, status: .notFound)
    }
    return .json(entry.writeAll)
  }

  private func set(_ request: Request, _ context: AdminContext) async throws -> Response {
    let name = context.parameters.get("name") ?? ""
    if let problem = ProfileName.problem(with: name) {
      throw Problem.badRequest(
        "\"\(name.prefix(80))\" cannot be the name of a profile", hint: "In the path, \(problem).")
    }
    let text = try await DocumentBody.text(of: request, hasWrapper: true)
    let isNew = try faults.store(name: name, text: text).isNew
    guard let entry = entry(name, faults.library.load()) else {
      throw Problem.notFound("the profile \(name) was removed by another request", hint: "Send it again.")
    }
    return .stored(at: "/profiles/\(name)", isNew: isNew) { $0.object(entry.writeAll) }
  }

  private func remove(_ request: Request, _ context: AdminContext) throws -> Response {
    let name = context.parameters.get("name") ?? ""
    let current = faults.selection.selectedProfile.source
    if current.origin == .uploaded, current.name == name {
      throw Problem(
        status: .conflict, detail: "the profile \(name) is active",
        hint: "Deactivate it first: DELETE /api/v1/profile.")
    }
    do {
      try faults.removeProfile(name)
    } catch {
      guard error.kind == .faulty else { throw Problem(error, isAddressed: true) }
      var problem = Problem(error)
      problem.status = .conflict
      problem.detail = "the active profile, \(current.name), requires it: \(problem.detail)"
      problem.hint = "Deactivate that profile first: DELETE /api/v1/profile."
      throw problem
    }
    return Response(status: .noContent)
  }

  private func reload(_ request: Request, _ context: AdminContext) async throws -> Response {
    _ = try await JSONBody(request).parse(EmptyBody.schema.parse)
    let problems = faults.reload()
    return .json { $0.arrayMember("problems") { problems.write(to: &$0) } }
  }

  private func entry(_ name: String, _ library: ProfileLibrary) -> ProfileEntry? {
    library.source(named: name).map { ProfileEntry($0, library, current: faults.selection.selectedProfile) }
  }

  // MARK: - Checks without activation

  private func lint(_ request: Request, _ context: AdminContext) async throws -> Response {
    let text = try await DocumentBody.text(of: request, hasWrapper: true)
    let loaded = try faults.library.load().profile(of: Self.sent(text))
    return .json { writer in
      writer.member("valid", true)
      writer.arrayMember("problems") { loaded.warnings.write(to: &$0) }
    }
  }

  private func simulate(_ request: Request, _ context: AdminContext) async throws -> Response {
    let body = try await JSONBody(request).parse(SimulationRequest.schema.parse)
    let library = faults.library.load()
    let profile: Profile
    switch (body.name, body.source) {
    case (let name?, nil): profile = try ProfileChoice(name, body.parameters, library).chosen.profile
    case (nil, let text?):
      let values = body.parameters.compactMapValues(\.self)
      profile = try library.profile(of: Self.sent(text), parameters: values).profile
    default:
      throw Problem.badRequest(
        "the body has not one of name and source",
        hint: "name is a profile of the library such as flaky-503?rate=0.4; source is the text of a profile file.")
    }
    let seed = body.seed ?? profile.seed ?? faults.selection.seed
    var load = Simulation.Load()
    if let pushes = body.pushes { load.pushes = pushes }
    let result = Simulation(profile: profile, seed: seed, load: load).run()
    return .jsonValue { writer in
      result.write(to: &writer) { $0.member("text", result.text) }
    }
  }

  /// Returns the source of a profile that is not stored.
  private static func sent(_ text: String) -> ProfileSource {
    ProfileSource(name: "profile", text: text, origin: .uploaded)
  }
}

/// The profile to simulate: one of the library, or a text.
struct SimulationRequest {
  var name: String?
  var source: String?
  var parameters: [String: String?] = [:]
  var seed: UInt64?
  var pushes: Int?

  static let schema = MapSchema(
    "SimulationRequest", SimulationRequest(),
    .optional("name", \.name, .text, "A profile of the library, such as `flaky-503?rate=0.2`."),
    .optional("source", \.source, .text, "The text of a profile file."),
    .defaulted(
      "params", \.parameters, .scalars, default: "those of the profile", "Values of the profile's parameters."),
    .optional("seed", \.seed, .integer(0...UInt64(Int64.max)), "The seed of the draws."),
    // The command line allows more.
    .optional("pushes", \.pushes, .integer(1...100_000), "The number of pushes."))
}

/// A profile of the library, for output.
private struct ProfileEntry {
  let source: ProfileSource
  let summary: String
  let isActive: Bool
  /// The parsed profile; nil if it is invalid, for example after a change of a profile that it extends.
  let profile: Profile?
  /// All problems of the profile, including warnings.
  let problems: [ProfileProblem]

  init(_ source: ProfileSource, _ library: ProfileLibrary, current: SelectedProfile) {
    self.source = source
    isActive = current.source == source
    do {
      let loaded = try library.profile(of: source)
      profile = isActive ? current.profile : loaded.profile
      problems = loaded.warnings
    } catch {
      profile = nil
      problems = error.problems
    }
    summary = profile?.summary ?? library.summary(of: source.name) ?? ""
  }

  func write(to writer: inout JSONWriter) {
    writer.member("name", source.name)
    writer.member("summary", summary)
    writer.member("origin", source.origin.text)
    writer.member("active", isActive)
    writer.arrayMember("params") { (profile?.parameters ?? []).write(to: &$0) }
  }

  /// Writes the profile's members with its source and content.
  func writeAll(to writer: inout JSONWriter) {
    write(to: &writer)
    writer.member("source", source.text)
    writer.name("profile")
    if let profile { profile.write(to: &writer) } else { writer.null() }
    writer.arrayMember("problems") { problems.write(to: &$0) }
  }
}

/// A profile that a request body selects: by its name or a reference such as `flaky-503?rate=0.4`, and parameter
/// values in `params`.
struct ProfileChoice {
  let chosen: SelectedProfile

  /// Resolves the selection.
  ///
  /// - Parameters:
  ///   - text: The name or reference.
  ///   - parameters: Values of parameters; nil for the default.
  /// - Throws: `Problem`: 400 for an invalid reference, 422 for an unknown profile. `ProfileFailure` for an unknown
  ///   parameter or an invalid value.
  init(_ text: String, _ parameters: [String: String?], _ library: ProfileLibrary) throws {
    let reference: ProfileReference
    do {
      reference = try ProfileReference(text)
    } catch {
      throw Problem.badRequest("name cannot be \"\(error.value)\"", hint: "Expected \(error.allowed).")
    }
    guard case .name(let name) = reference.place else {
      throw Problem.badRequest(
        "name is the path of a file, and the server reads none for its clients",
        hint: "Send the file with PUT /api/v1/profiles/NAME first.")
    }
    guard let source = library.source(named: name) else {
      throw Problem.unknownProfile(name, library, status: .unprocessableContent)
    }
    var values = reference.parameters
    // Null resets a parameter to its default.
    for (name, value) in parameters { values[name] = value }
    chosen = SelectedProfile(source: source, profile: try library.profile(of: source, parameters: values).profile)
  }
}
