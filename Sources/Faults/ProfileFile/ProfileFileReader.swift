internal import APNSRules
import FaultModel
internal import Notation
internal import PlatformLibc

/// Reads profile files completely, with bounded size, and without blocking on special files such as pipes.
enum ProfileFileReader {
  /// The file name extensions.
  static let endings = [".yaml", ".yml"]
  /// The limits on a profile or rule, which may come from any client of the admin API.
  static let limits = YAMLNode.Limits(length: 256 * 1024, depth: 32, values: 20_000, rejectsCompoundKeys: true)
  /// The maximum number of files in a folder.
  static let fileLimit = 1000

  /// Returns the text of a file; nil after adding a problem.
  static func text(of path: String, problems: ProblemList) -> String? {
    guard let bytes = bytes(of: path, problems: problems) else { return nil }
    do throws(YAMLError) {
      return try YAMLNode.text(bytes, limits: limits)
    } catch {
      problems.add(error, file: path)
      return nil
    }
  }

  /// Parses the text of a profile or rule; returns nil after adding a problem.
  static func root(of text: String, file: String, problems: ProblemList) -> YAMLNode? {
    do throws(YAMLError) {
      if let root = try YAMLNode.parse(text, limits: limits) { return root }
      problems.add(
        ProfileProblem(file: file, "the file is empty", hint: "a profile is a map: name: my-profile, rules: […]"))
    } catch {
      problems.add(error, file: file)
    }
    return nil
  }

  /// Returns the profiles of a folder, named after their files and in their order; nil after adding a problem if the
  /// folder cannot be read. An unreadable file is recorded as a problem and left out.
  static func sources(in path: String, problems: ProblemList) -> [ProfileSource]? {
    guard let folder = opendir(path) else {
      problems.add(failure(path, "cannot be read"))
      return nil
    }
    defer { closedir(folder) }
    var files: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      guard !name.hasPrefix("."), endings.contains(where: name.hasSuffix) else { continue }
      files.append(name)
      if files.count > fileLimit {
        problems.add(ProfileProblem(file: path, "more than \(fileLimit) profiles"))
        return nil
      }
    }
    let folderPath = path.hasSuffix("/") ? path : path + "/"
    return files.sorted().compactMap { file in
      let path = folderPath + file
      guard let text = text(of: path, problems: problems) else { return nil }
      return ProfileSource(name: baseName(of: file), text: text, origin: .file(path))
    }
  }

  /// Returns the name of a file without folder and extension.
  static func baseName(of path: String) -> String {
    let name = path.split(separator: "/").last.map(String.init) ?? path
    guard let ending = endings.first(where: name.hasSuffix) else { return name }
    return String(name.dropLast(ending.count))
  }

  private static func bytes(of path: String, problems: ProblemList) -> [UInt8]? {
    // Do not block: opening a pipe would wait for a writer.
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      problems.add(failure(path, "cannot be read"))
      return nil
    }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      problems.add(ProfileProblem(file: path, "is not a file"))
      return nil
    }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16_384)
    while bytes.count <= limits.length {
      let count = read(file, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else {
        problems.add(failure(path, "cannot be read"))
        return nil
      }
      if count == 0 { break }
      bytes += chunk.prefix(count)
    }
    return bytes
  }

  private static func failure(_ path: String, _ what: String) -> ProfileProblem {
    ProfileProblem(
      file: path, "\(what): \(String(cString: strerror(errno)))",
      hint: "check the permissions of the file and its folder")
  }
}

/// One text of a profile: its own or that of a base profile.
struct ProfileLayer {
  let source: ProfileSource
  let reading: ProfileParser
  let map: ProfileParser.Map<ProfileKey>

  /// The name that the text declares; if absent, the name of its source.
  var name: String {
    guard case .scalar(let scalar)? = map[.name]?.node.content, !scalar.text.isEmpty else { return source.name }
    return scalar.text
  }

  /// Parses the rules; invalid ones are left out.
  func rules() -> [PlacedRule] {
    guard let place = map[.rules], !place.node.isEmpty, let elements = reading.list(place) else { return [] }
    return elements.enumerated().compactMap { reading.rule($1, defaultName: "rule-\($0 + 1)") }
  }

  /// Parses everything except the rules into `profile`, overriding the values from its bases.
  func readHeader(into profile: inout Profile) {
    if let place = map[.name] { _ = reading.name(place) }
    profile.summary = map[.summary].flatMap { reading.text($0) } ?? ""
    if let seed = map[.seed].flatMap(seed) { profile.seed = seed }
    if let identity = map[.pushKey].flatMap({ reading.word($0, of: Profile.PushIdentity.self) }) {
      profile.pushIdentity = identity
    }
    if let place = map[.stop], let map = reading.map(place, StopKey.self),
      let after = map[.after].flatMap({ reading.duration($0, isPositive: true) })
    {
      profile.stopAfter = after
    }
    if let place = map[.limits], let map = reading.map(place, LimitsKey.self) {
      if let active = map[.maxActive].flatMap({ reading.whole($0, in: 1...1_000_000) }) {
        profile.limits.maxActive = active
      }
      if let hold = map[.maxHold].flatMap({ reading.duration($0, isPositive: true) }) { profile.limits.maxHold = hold }
    }
    readSettings(into: &profile)
  }

  /// Parses 64 bits, one more than `whole` supports.
  private func seed(_ place: ProfileParser.Located) -> UInt64? {
    guard let scalar = reading.scalar(place, for: .whole) else { return nil }
    if !scalar.isString, let seed = UInt64(scalar.text) { return seed }
    reading.fail(place, scalar, "\(scalar.text.shortened) is not a whole number from 0 to 2⁶⁴−1")
    return nil
  }

  private func readSettings(into profile: inout Profile) {
    guard let place = map[.apns], let entries = reading.entries(place) else { return }
    for entry in entries {
      guard let setting = APNSSetting(rawValue: entry.key) else {
        reading.failUnknown(entry, in: place, among: APNSSetting.allCases.map(\.rawValue))
        continue
      }
      let value = place.member(entry)
      guard let scalar = reading.scalar(value, for: .any) else { continue }
      do throws(InvalidSettingValue) {
        var settings = APNSSettings()
        try settings.set(setting, to: scalar.text)
        profile.settings[setting] = scalar.text
      } catch {
        reading.fail(value, scalar, "cannot be \"\(scalar.text.shortened)\"", hint: "expected \(error.allowed)")
      }
    }
  }
}
