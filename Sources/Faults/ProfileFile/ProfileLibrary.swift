internal import APNSMockEmbeddedFiles
package import APNSMockFaultModel
internal import APNSMockNotation

/// All known profiles: built-in ones, those of a folder and those uploaded to the server. If several have the same
/// name, an uploaded profile takes precedence over one of the folder, and that over a built-in one. Changes return a
/// new library.
package struct ProfileLibrary: Sendable {
  private var builtIn: [String: ProfileSource]
  private var folderProfiles: [String: ProfileSource] = [:]
  private var uploaded: [String: ProfileSource] = [:]

  /// Creates a library of the built-in profiles.
  package init() {
    builtIn = Dictionary(
      EmbeddedFile.faultProfiles.map { ($0.name, ProfileSource(name: $0.name, text: $0.text, origin: .builtIn)) },
      uniquingKeysWith: { first, _ in first })
  }

  /// The names of all profiles: the built-in ones in the order of the documentation, then the others sorted by name.
  package var names: [String] {
    let known = EmbeddedFile.faultProfiles.map(\.name)
    return known + Set(folderProfiles.keys).union(uploaded.keys).subtracting(known).sorted()
  }

  /// Returns the active source of a profile; nil if there is none.
  package func source(named name: String) -> ProfileSource? { uploaded[name] ?? folderProfiles[name] ?? builtIn[name] }

  /// Returns a profile's summary, even if the rest of the profile is invalid; nil if there is none.
  package func summary(of name: String) -> String? {
    source(named: name).flatMap { Self.value(of: \.summary, in: $0) }
  }

  // MARK: - Loading profiles

  /// Returns the profile with a name, ready to run.
  ///
  /// - Parameter parameters: Values of its parameters as written; the others have their defaults.
  /// - Throws: `ProfileFailure`, of kind `unknownName` if there is no such profile.
  package func profile(
    named name: String, parameters: [String: String] = [:]
  ) throws(ProfileFailure) -> LoadedProfile {
    guard let source = source(named: name) else { throw unknown(name) }
    return try profile(of: source, parameters: parameters)
  }

  /// Returns the profile of this library or of a file that a reference names.
  ///
  /// - Throws: `ProfileFailure`.
  package func profile(_ reference: ProfileReference) throws(ProfileFailure) -> LoadedProfile {
    switch reference.place {
    case .name(let name): return try profile(named: name, parameters: reference.parameters)
    case .file(let path): return try profile(of: Self.file(path), parameters: reference.parameters)
    }
  }

  /// Returns the profile of a text that is not part of the library. It may extend profiles of the library.
  ///
  /// - Throws: `ProfileFailure`.
  package func profile(
    of source: ProfileSource, parameters: [String: String] = [:]
  ) throws(ProfileFailure) -> LoadedProfile {
    var assembly = ProfileBuilder(names: names) { name in self.source(named: name) }
    guard let profile = assembly.profile(of: source, values: parameters) else {
      throw ProfileFailure(.faulty, assembly.problems.inOrder)
    }
    return LoadedProfile(profile: profile, warnings: assembly.problems.inOrder)
  }

  /// Returns all errors and warnings for a text.
  package func problems(in source: ProfileSource) -> [ProfileProblem] {
    var assembly = ProfileBuilder(names: names) { name in self.source(named: name) }
    _ = assembly.profile(of: source)
    return assembly.problems.inOrder
  }

  /// Reads the text of a file.
  ///
  /// - Throws: `ProfileFailure` if the file cannot be read, is too long, or is not UTF-8.
  package static func file(_ path: String) throws(ProfileFailure) -> ProfileSource {
    let problems = ProblemList()
    guard let text = ProfileFileReader.text(of: path, problems: problems) else {
      throw ProfileFailure(.faulty, problems.inOrder)
    }
    return ProfileSource(name: ProfileFileReader.baseName(of: path), text: text, origin: .file(path))
  }

  private func unknown(_ name: String) -> ProfileFailure {
    ProfileFailure(
      .unknownName,
      [
        ProfileProblem(
          file: "", "unknown profile \"\(name.shortened)\"",
          hint: SchemaParser.guess(name, among: names)
            ?? "the profiles are \(Spelling.choices(for: name, among: names))")
      ])
  }

  // MARK: - Uploaded profiles

  /// Returns a library with an uploaded profile added or replaced.
  ///
  /// - Returns: The library, and the profile with its defaults and warnings.
  /// - Throws: `ProfileFailure` if the text has an error or declares another name.
  package func adding(
    name: String, text: String
  ) throws(ProfileFailure) -> (library: ProfileLibrary, loaded: LoadedProfile) {
    if let problem = ProfileName.problem(with: name) {
      throw ProfileFailure(.notAllowed, [ProfileProblem(file: name.shortened, problem)])
    }
    let source = ProfileSource(name: name, text: text, origin: .uploaded)
    let known = uploaded[name] != nil
    guard known || uploaded.count < ProfileFileReader.fileLimit else {
      throw ProfileFailure(
        .notAllowed, [ProfileProblem(file: name, "\(ProfileFileReader.fileLimit) profiles were uploaded already")])
    }
    var library = self
    library.uploaded[name] = source
    // Load it from the new library, so that a cycle through itself is found.
    let loaded = try library.profile(of: source)
    guard loaded.profile.name == name else {
      throw ProfileFailure(
        .faulty,
        [
          ProfileProblem(
            file: name, path: Profile.schema.name(of: \.name),
            "the profile's text has the name \"\(loaded.profile.name)\"",
            hint: "omit the name, or send it under that name")
        ])
    }
    return (library, loaded)
  }

  /// Returns a library without an uploaded profile. A profile of the folder or a built-in one with that name becomes
  /// active again.
  ///
  /// - Throws: `ProfileFailure`, of kind `notAllowed` for profiles that were not uploaded.
  package func removing(name: String) throws(ProfileFailure) -> ProfileLibrary {
    var library = self
    if library.uploaded.removeValue(forKey: name) != nil { return library }
    guard let source = source(named: name) else { throw unknown(name) }
    let problem =
      if case .file(let path) = source.origin {
        ProfileProblem(
          file: name, "the profile comes from the file \(path)",
          hint: "delete that file, then run `apns-mock profile reload`")
      } else {
        ProfileProblem(file: name, "built-in profiles cannot be removed")
      }
    throw ProfileFailure(.notAllowed, [problem])
  }

  // MARK: - Profiles of a folder

  /// The result of reading a folder.
  package struct Reading: Sendable {
    /// The library with the folder's profiles. For an invalid file, it keeps the previous version.
    package let library: ProfileLibrary
    /// All errors and warnings in the files.
    package let problems: [ProfileProblem]
    /// Messages about built-in profiles that a file replaces.
    package let notices: [String]

    /// Whether a file is invalid.
    package var hasErrors: Bool { problems.contains { $0.severity == .error } }
  }

  /// Reads the `*.yaml` and `*.yml` files of a folder again.
  package func reloading(folder: String) -> Reading {
    let problems = ProblemList()
    var library = self
    guard let sources = ProfileFileReader.sources(in: folder, problems: problems) else {
      return Reading(library: self, problems: problems.inOrder, notices: [])
    }
    library.folderProfiles = [:]
    for source in sources {
      let name = Self.declaredName(of: source)
      if let twin = library.folderProfiles[name] {
        problems.add(
          ProfileProblem(
            file: source.file, "there is a profile \"\(name.shortened)\" in \(twin.file) already",
            hint: "rename it"))
      } else {
        library.folderProfiles[name] = ProfileSource(name: name, text: source.text, origin: source.origin)
      }
    }
    library.keep(from: self, problems)
    let builtInNames = Set(builtIn.keys)
    let notices = library.folderProfiles.values.filter { builtInNames.contains($0.name) }.map {
      "\($0.file) replaces the built-in profile \($0.name)"
    }
    return Reading(library: library, problems: problems.inOrder, notices: notices.sorted())
  }

  /// Validates the folder's profiles, which may extend each other, and restores the previous version of those with
  /// errors.
  private mutating func keep(from former: ProfileLibrary, _ list: ProblemList) {
    let new = self
    for source in new.folderProfiles.values.sorted(by: { $0.file < $1.file }) {
      let found = new.problems(in: source).filter { $0.file == source.file || $0.severity == .error }
      for problem in found where !list.problems.contains(problem) { list.add(problem) }
      if found.contains(where: { $0.severity == .error }) {
        folderProfiles[source.name] = former.folderProfiles[source.name]
      }
    }
  }

  /// Returns the name that the text declares if it is readable and valid; otherwise the file's base name.
  private static func declaredName(of source: ProfileSource) -> String {
    value(of: \.name, in: source).flatMap { ProfileName.problem(with: $0) == nil ? $0 : nil } ?? source.name
  }

  /// Returns a top-level value of a text if that much is readable.
  private static func value(of property: PartialKeyPath<Profile>, in source: ProfileSource) -> String? {
    let root = ProfileFileReader.root(of: source.text, file: source.file, problems: ProblemList())
    return root?[Profile.schema.name(of: property)]?.text
  }
}

extension ProfileLibrary {
  /// The names of all profiles, their rules and their reasons. Reads every profile; an invalid profile contributes
  /// only its name.
  package var faultNames: FaultNames {
    var faultNames = FaultNames()
    for name in names {
      faultNames.add((try? profile(named: name).profile) ?? Profile(name: name))
    }
    return faultNames
  }
}
