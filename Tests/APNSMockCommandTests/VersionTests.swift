import Foundation
import Testing

@testable import APNSMockCommand

/// The packages take their version from the file `VERSION`, the program from a constant.
@Suite struct VersionTests {
  @Test func theProgramHasTheVersionOfThePackages() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "VERSION")
    #expect(try String(contentsOf: file, encoding: .utf8) == Version.text + "\n")
  }
}
