internal import FaultProfiles

/// All profiles there are: the built-in ones, those of a folder, and those that were sent to the server. Of one name the
/// last of these wins. A value: a change makes another library.
public struct ProfileLibrary: Sendable {
  private var builtIn: [String: ProfileSource]
  private var ofFolder: [String: ProfileSource] = [:]
  private var sent: [String: ProfileSource] = [:]

  /// The built-in profiles.
  public init() {
    builtIn = Dictionary(
      BuiltInProfiles.all.map { ($0.name, ProfileSource(name: $0.name, text: $0.text, origin: .builtIn)) },
      uniquingKeysWith: { first, _ in first })
  }

  /// The names of all profiles, the built-in ones in the order of the documentation, then the others by name.
  public var names: [String] {
    let known = BuiltInProfiles.all.map(\.name)
    return known + Set(ofFolder.keys).union(sent.keys).subtracting(known).sorted()
  }

  /// The text in force for a name; nil if there is none.
  public func source(named name: String) -> ProfileSource? { sent[name] ?? ofFolder[name] ?? builtIn[name] }

  /// What a profile says about itself in one sentence, whether or not the rest of it is right; nil if there is none.
  public func summary(of name: String) -> String? {
    source(named: name).flatMap { Self.word(.summary, of: $0) }
  }

  // MARK: - Making profiles

  /// The profile of a name, ready to run.
  ///
  /// - Parameter parameters: values of its knobs, as they are written; the others have their defaults.
  /// - Throws: `ProfileFailure`, of kind `unknownName` if there is none.
  public func profile(
    named name: String, parameters: [String: String] = [:]
  ) throws(ProfileFailure) -> LoadedProfile {
    guard let source = source(named: name) else { throw unknown(name) }
    return try profile(of: source, parameters: parameters)
  }

  /// The profile a reference names: of this library, or a file.
  ///
  /// - Throws: `ProfileFailure`.
  public func profile(_ reference: ProfileReference) throws(ProfileFailure) -> LoadedProfile {
    switch reference.place {
    case .name(let name): return try profile(named: name, parameters: reference.parameters)
    case .file(let path): return try profile(of: Self.file(path), parameters: reference.parameters)
    }
  }

  /// The profile of a text that is not part of the library. It may extend profiles that are.
  ///
  /// - Throws: `ProfileFailure`.
  public func profile(
    of source: ProfileSource, parameters: [String: String] = [:]
  ) throws(ProfileFailure) -> LoadedProfile {
    var assembly = ProfileAssembly(names: names) { name in self.source(named: name) }
    guard let profile = assembly.profile(of: source, values: parameters) else {
      throw ProfileFailure(.faulty, assembly.problems.inOrder)
    }
    return LoadedProfile(profile: profile, warnings: assembly.problems.inOrder)
  }

  /// Everything that is wrong with a text, warnings too.
  public func problems(in source: ProfileSource) -> [ProfileProblem] {
    var assembly = ProfileAssembly(names: names) { name in self.source(named: name) }
    _ = assembly.profile(of: source)
    return assembly.problems.inOrder
  }

  /// The text of a file.
  ///
  /// - Throws: `ProfileFailure` if it cannot be read, is too long, or is not UTF-8.
  public static func file(_ path: String) throws(ProfileFailure) -> ProfileSource {
    let problems = ProblemList()
    guard let text = ProfileFolder.text(of: path, problems: problems) else {
      throw ProfileFailure(.faulty, problems.inOrder)
    }
    return ProfileSource(name: ProfileFolder.baseName(of: path), text: text, origin: .file(path))
  }

  private func unknown(_ name: String) -> ProfileFailure {
    ProfileFailure(
      .unknownName,
      [
        ProfileProblem(
          file: "", "there is no profile \"\(name.shortened)\"",
          hint: ProfileReading.guess(name, among: names) ?? "there are \(names.joined(separator: ", "))")
      ])
  }

  // MARK: - Profiles that are sent

  /// The library with another text for a name.
  ///
  /// - Returns: the library, the profile with its defaults, and what somebody should look at.
  /// - Throws: `ProfileFailure` if the text has an error, or calls itself otherwise.
  public func setting(
    name: String, text: String
  ) throws(ProfileFailure) -> (library: ProfileLibrary, loaded: LoadedProfile) {
    if let problem = ProfileName.problem(with: name) {
      throw ProfileFailure(.notAllowed, [ProfileProblem(file: name.shortened, problem)])
    }
    let source = ProfileSource(name: name, text: text, origin: .sent)
    let known = sent[name] != nil
    guard known || sent.count < ProfileFolder.fileLimit else {
      throw ProfileFailure(
        .notAllowed, [ProfileProblem(file: name, "\(ProfileFolder.fileLimit) profiles were sent already")])
    }
    var library = self
    library.sent[name] = source
    // In the library it is to be part of, so that a circle through itself shows.
    let loaded = try library.profile(of: source)
    guard loaded.profile.name == name else {
      throw ProfileFailure(
        .faulty,
        [
          ProfileProblem(
            file: name, path: ProfileKey.name.rawValue, "it calls itself \"\(loaded.profile.name)\"",
            hint: "leave the name out, or send it under that one")
        ])
    }
    return (library, loaded)
  }

  /// The library without a profile that was sent; one of a file or a built-in one of that name is in force again.
  ///
  /// - Throws: `ProfileFailure`, of kind `notAllowed` for profiles that were not sent.
  public func removing(name: String) throws(ProfileFailure) -> ProfileLibrary {
    var library = self
    if library.sent.removeValue(forKey: name) != nil { return library }
    guard let source = source(named: name) else { throw unknown(name) }
    let problem =
      if case .file(let path) = source.origin {
        ProfileProblem(file: name, "it is the file \(path)", hint: "remove that, and read the folder again")
      } else {
        ProfileProblem(file: name, "built-in profiles stay")
      }
    throw ProfileFailure(.notAllowed, [problem])
  }

  // MARK: - Profiles of a folder

  /// What reading a folder came to.
  public struct Reading: Sendable {
    /// The library with the profiles of the folder. Where a file is bad, the version before it is still there.
    public let library: ProfileLibrary
    /// Everything that is wrong in the files, warnings too.
    public let problems: [ProfileProblem]
    /// What is worth saying though it is right: built-in profiles that a file stands for.
    public let notices: [String]

    /// Whether a file is bad.
    public var hasErrors: Bool { problems.contains { $0.severity == .error } }
  }

  /// Reads the `*.yaml` and `*.yml` of a folder anew.
  public func reloading(folder: String) -> Reading {
    let problems = ProblemList()
    var library = self
    guard let sources = ProfileFolder.sources(in: folder, problems: problems) else {
      return Reading(library: self, problems: problems.inOrder, notices: [])
    }
    library.ofFolder = [:]
    for source in sources {
      let name = Self.declaredName(of: source)
      if let twin = library.ofFolder[name] {
        problems.add(
          ProfileProblem(
            file: source.file, "there is a profile \"\(name.shortened)\" in \(twin.file) already",
            hint: "give it another name"))
      } else {
        library.ofFolder[name] = ProfileSource(name: name, text: source.text, origin: source.origin)
      }
    }
    library.keep(from: self, problems)
    let builtInNames = Set(builtIn.keys)
    let notices = library.ofFolder.values.filter { builtInNames.contains($0.name) }.map {
      "\($0.file) stands for the built-in profile \($0.name)"
    }
    return Reading(library: library, problems: problems.inOrder, notices: notices.sorted())
  }

  /// Judges what a folder brought, once all of it is there for the others to extend, and takes back what is bad.
  private mutating func keep(from former: ProfileLibrary, _ list: ProblemList) {
    let new = self
    for source in new.ofFolder.values.sorted(by: { $0.file < $1.file }) {
      let found = new.problems(in: source).filter { $0.file == source.file || $0.severity == .error }
      for problem in found where !list.problems.contains(problem) { list.add(problem) }
      if found.contains(where: { $0.severity == .error }) { ofFolder[source.name] = former.ofFolder[source.name] }
    }
  }

  /// What the text calls itself, if that can be read and is a name, else the name of the file.
  private static func declaredName(of source: ProfileSource) -> String {
    word(.name, of: source).flatMap { ProfileName.problem(with: $0) == nil ? $0 : nil } ?? source.name
  }

  /// A value at the top of a text, if that much of it can be read.
  private static func word(_ key: ProfileKey, of source: ProfileSource) -> String? {
    guard let root = ProfileText.read(source.text, file: source.file, problems: ProblemList()),
      case .map(let entries) = root.content,
      case .scalar(let scalar)? = entries.first(where: { $0.key == key.rawValue })?.value.content
    else { return nil }
    return scalar.text
  }
}
