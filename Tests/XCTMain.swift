private import Foundation
private import Testing

/// The program of all tests, which use Swift Testing only.
///
/// SwiftPM generates such a program where this file is missing, but then needs an index of all sources to find the tests
/// of XCTest.
@main struct TestProgram {
  static func main() async {
    let arguments = CommandLine.arguments
    guard zip(arguments, arguments.dropFirst()).contains(where: { $0 == ("--testing-library", "swift-testing") }) else {
      // `swift test` also starts the program for the tests of XCTest, or for a list of them. There are none.
      if arguments.contains("--dump-tests-json") { print(#"{"tests": []}"#) }
      exit(EXIT_SUCCESS)
    }
    // All tests share as many threads as there are cores: if all began at once, each step of a test would wait for steps of
    // all others, and time limits would run out. Before Swift 6.3 this has no effect.
    setenv("SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH", "8", 0)
    await Testing.__swiftPMEntryPoint() as Never
  }
}
