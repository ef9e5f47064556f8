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

/// A folder that only this user may enter, for the files of one run.
struct TemporaryFolder: Sendable {
  /// Where it is.
  let path: String

  /// Makes it, below `TMPDIR`.
  ///
  /// - Throws: `CommandFailure`.
  init() throws {
    let parent = Environment.variables.given("TMPDIR") ?? "/tmp"
    var template = Array("\(parent)/apns-mock-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else {
      throw CommandFailure(
        .failed,
        "\(parent): no folder can be made there: \(String(cString: strerror(errno))); set TMPDIR to another one")
    }
    path = Files.absolute(String(cString: made))
  }

  /// Removes the folder and everything in it.
  func remove() { try? FileManager.default.removeItem(atPath: path) }
}
