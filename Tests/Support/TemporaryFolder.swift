import Foundation

/// A folder for one test, removed when the object is released.
package final class TemporaryFolder: Sendable {
  /// The path of the folder, without symbolic links.
  package let path: String

  package init() throws {
    path = FileManager.default.temporaryDirectory.resolvingSymlinksInPath().path + "/apns-mock-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Returns the path of a file in the folder.
  package func path(_ name: String) -> String { path + "/" + name }

  /// Writes a file that only its owner can read, as the server expects of a private key, and returns its path.
  @discardableResult
  package func file(_ name: String, _ bytes: [UInt8]) throws -> String {
    let path = path(name)
    guard
      FileManager.default.createFile(
        atPath: path, contents: Data(bytes), attributes: [.posixPermissions: 0o600])
    else { throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: path]) }
    return path
  }

  @discardableResult
  package func file(_ name: String, _ text: String) throws -> String { try file(name, Array(text.utf8)) }

  /// Returns the content of a file in the folder.
  package func bytes(_ name: String) throws -> [UInt8] { try Self.bytes(at: path(name)) }

  package func text(_ name: String) throws -> String { String(decoding: try bytes(name), as: UTF8.self) }

  /// Returns the content of any file. `Data(contentsOf:)` leaks its buffer for empty files.
  static func bytes(at path: String) throws -> [UInt8] {
    let file = try FileHandle(forReadingFrom: URL(filePath: path))
    defer { try? file.close() }
    return Array(try file.readToEnd() ?? Data())
  }
}
