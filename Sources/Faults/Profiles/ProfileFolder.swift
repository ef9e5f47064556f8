#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// Reads the files of profiles: whole, bounded, and never one that a reader would wait for.
enum ProfileFolder {
  /// How their names end.
  static let endings = [".yaml", ".yml"]
  /// How many files one folder may have.
  static let fileLimit = 1000

  /// The text of a file; nil after adding a problem.
  static func text(of path: String, problems: ProblemList) -> String? {
    guard let bytes = bytes(of: path, problems: problems) else { return nil }
    return ProfileText.text(bytes, file: path, problems: problems)
  }

  /// The profiles of a folder by the names of their files, in their order; nil after adding a problem if the folder
  /// cannot be read. A file that cannot be read is a problem too, and left out.
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

  /// The name of a file without its folder and its ending.
  static func baseName(of path: String) -> String {
    let name = path.split(separator: "/").last.map(String.init) ?? path
    guard let ending = endings.first(where: name.hasSuffix) else { return name }
    return String(name.dropLast(ending.count))
  }

  private static func bytes(of path: String, problems: ProblemList) -> [UInt8]? {
    // Without waiting: opening a pipe would last until somebody writes.
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
    while bytes.count <= ProfileText.lengthLimit {
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
      hint: "see to it that this user may read the file and its folder")
  }
}
