#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A folder for the files of one run that only the current user can access.
struct TemporaryFolder: Sendable {
  /// The absolute path.
  let path: String

  /// Creates the folder in `TMPDIR`.
  ///
  /// - Throws: `CommandFailure`.
  init() throws {
    let parent = Environment.variables.given("TMPDIR") ?? "/tmp"
    var template = Array("\(parent)/apns-mock-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else {
      throw CommandFailure(
        .failed,
        "\(parent): cannot create a folder: \(String(cString: strerror(errno))); set TMPDIR to another one")
    }
    path = Files.absolute(String(cString: made))
  }

  /// Removes the folder and everything in it.
  func remove() { try? FileManager.default.removeItem(atPath: path) }
}
