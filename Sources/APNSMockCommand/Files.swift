import MockAPNS

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Files that the commands read and write, by path. Errors are `CommandFailure`s that name the file and the system's
/// reason.
enum Files {
  /// The path from the root, whatever the working directory becomes.
  static func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
    defer { free(folder) }
    return String(cString: folder) + "/" + (path.hasPrefix("./") ? String(path.dropFirst(2)) : path)
  }

  /// More than anybody writes by hand or has made for a command. What is longer was named by mistake.
  private static let limit = 64 << 20

  /// All bytes of a file, at most 64 MiB; `-` is standard input.
  static func contents(of path: String) throws -> [UInt8] {
    do throws(FileError) {
      return path == "-"
        ? try WholeFile.standardInput(limit: limit) : try WholeFile(path: path).bytes(limit: limit)
    } catch {
      // Who knows what the file is for says how to repair it.
      throw CommandFailure(.usage, "\(error)")
    }
  }

  /// The text of a file.
  static func text(of path: String) throws -> String { String(decoding: try contents(of: path), as: UTF8.self) }

  /// Puts `bytes` there so that nobody ever sees a part of them. Only this user may read them.
  static func replace(_ path: String, with bytes: [UInt8]) throws {
    try writing { () throws(FileError) in try WholeFile(path: path).replace(with: bytes, isPrivate: true) }
  }

  /// Begins a file that is written piece by piece, and seen by others only when it is whole.
  static func replacement(of path: String) throws -> FileReplacement {
    try writing { () throws(FileError) in try FileReplacement(of: path, isPrivate: false) }
  }

  /// Does something with a file that is written. Errors are `CommandFailure`s.
  static func writing<Result>(_ work: () throws(FileError) -> Result) throws -> Result {
    do throws(FileError) {
      return try work()
    } catch {
      throw CommandFailure(.usage, "\(error); \(error.repair), or name another file")
    }
  }
}
