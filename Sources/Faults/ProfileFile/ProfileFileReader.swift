internal import APNSMockRules
import APNSMockFaultModel
internal import APNSMockNotation
internal import APNSMockPlatformLibc

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
    guard let names = names(inFolder: path) else {
      problems.add(failure(path, "cannot be read"))
      return nil
    }
    let files = names.filter { name in !name.hasPrefix(".") && endings.contains(where: name.hasSuffix) }
    guard files.count <= fileLimit else {
      problems.add(ProfileProblem(file: path, "more than \(fileLimit) profiles"))
      return nil
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
    let code = errno
    return ProfileProblem(
      file: path, "\(what): \(String(cString: strerror(code)))",
      hint: code == ENOENT ? "check the path" : "check the permissions of the file and its folder")
  }
}
