public import MockAPNS

extension MockServer {
  @TaskLocal static var taskLocal: MockServer?

  /// The server that the trait `.apns()` started for the running test.
  ///
  /// Also available in a suite's initializer and in the test's child tasks, but not in detached tasks or in callbacks
  /// on other threads.
  ///
  /// - Throws: `MissingServerError` if there is none.
  public static var current: MockServer {
    get throws(MissingServerError) {
      guard let server = taskLocal else { throw MissingServerError() }
      return server
    }
  }
}

/// An access to `MockServer.current` outside of a test with the trait `.apns()`.
public struct MissingServerError: Error, CustomStringConvertible {
  /// The problem and its solution.
  public var description: String {
    "MockServer.current has no server here: add the trait `.apns()` to the test or its suite, and read the property in the test itself or in a child task of it, not in a detached task"
  }
}
