import Foundation
import APNSMockPlatformLibc

/// A program that a test starts. Its standard output and standard error are one stream.
///
/// Foundation's `Process` has crashed when several threads started programs concurrently.
public struct ChildProgram: Sendable {
  private let processID: pid_t
  private let output: FileHandle

  /// The exit status and the output of a program that has exited.
  public struct Outcome: Sendable {
    /// The exit status; 128 and the number of the signal that ended the program.
    public let status: Int32
    /// What the program wrote to standard output and standard error.
    public let output: String
  }

  /// Runs a program until it exits.
  ///
  /// - Parameters:
  ///   - arguments: The name of the program, which is searched for in `PATH`, and its arguments.
  ///   - folder: The working directory; nil for that of the tests.
  @discardableResult
  public static func run(_ arguments: [String], in folder: String? = nil) async throws -> Outcome {
    let change = folder.map { ["sh", "-c", #"cd "$0" && exec "$@""#, $0] } ?? []
    let program = try ChildProgram(change + arguments)
    return await onOwnThread {
      let output = (try? program.output.readToEnd()) ?? Data()
      return Outcome(status: program.waitForExit(), output: String(decoding: output, as: UTF8.self))
    }
  }

  /// Starts a program and ends it after `body`.
  ///
  /// - Parameters:
  ///   - arguments: The name of the program and its arguments.
  ///   - line: The beginning of the line that the program writes when it is ready.
  ///   - body: Receives the rest of that line.
  package static func serve(
    _ arguments: [String], readyAt line: String, _ body: (Substring) async throws -> Void
  ) async throws {
    let program = try ChildProgram(arguments)
    let result: Result<Void, any Error>
    do {
      let rest = await onOwnThread { Result { try program.readLine(beginningWith: line) } }
      result = .success(try await body(rest.get()))
    } catch {
      result = .failure(error)
    }
    kill(program.processID, SIGKILL)
    _ = await onOwnThread { program.waitForExit() }
    try result.get()
  }

  private init(_ arguments: [String]) throws {
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
      var attributes: posix_spawnattr_t?
    #else
      var actions = posix_spawn_file_actions_t()
      var attributes = posix_spawnattr_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    posix_spawnattr_init(&attributes)
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
    }
    let pipe = Pipe()
    let writing = pipe.fileHandleForWriting.fileDescriptor
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, writing, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&actions, writing, STDERR_FILENO)
    // The program must not keep sockets and pipes of other tests open.
    #if canImport(Darwin)
      posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_CLOEXEC_DEFAULT))
    #else
      for other in (STDERR_FILENO + 1)..<min(getdtablesize(), 4096) {
        posix_spawn_file_actions_addclose(&actions, other)
      }
    #endif

    var strings: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    defer { for string in strings { free(string) } }
    var processID: pid_t = 0
    let problem = posix_spawnp(&processID, arguments[0], &actions, &attributes, &strings, environ)
    guard problem == 0 else {
      throw DidNotHappen(description: "\(arguments[0]) starts: \(String(cString: strerror(problem)))")
    }
    self.processID = processID
    output = pipe.fileHandleForReading
  }

  /// Blocks until the program has written a line with this beginning, and returns the rest of it.
  private func readLine(beginningWith beginning: String) throws -> Substring {
    var text = ""
    while true {
      let more = output.availableData
      text += String(decoding: more, as: UTF8.self)
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      if let line = lines.first(where: { $0.hasPrefix(beginning) }) { return line.dropFirst(beginning.count) }
      if more.isEmpty { throw DidNotHappen(description: "a line \(beginning) in: \(text)") }
    }
  }

  /// Blocks until the program has exited, and returns its status.
  private func waitForExit() -> Int32 {
    var status: Int32 = 0
    while waitpid(processID, &status, 0) < 0 && errno == EINTR {}
    let signal = status & 0x7F
    return signal == 0 ? status >> 8 & 0xFF : 128 + signal
  }
}
