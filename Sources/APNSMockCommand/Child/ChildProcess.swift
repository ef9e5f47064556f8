// `environ` is a variable of the C library, which knows nothing of concurrency; it is read before there is a child.
#if canImport(Darwin)
  @preconcurrency import Darwin
#elseif canImport(Musl)
  @preconcurrency import Musl
#else
  @preconcurrency import Glibc
#endif

/// A program that this one runs, in the same process group and with the same standard streams, working directory and
/// limits: what `env` would make of the same words.
///
/// By posix_spawn, and not by Foundation's Process, whose children inherit the blocked signals of the thread that
/// happens to start them, and so ignore SIGTERM.
struct ChildProcess: Sendable {
  /// Its process id.
  let id: pid_t

  /// How it ended.
  enum Ending: Equatable, Sendable {
    case exited(Int32)
    case killed(signal: Int32)

    /// As shells tell it: the program's own code, or 128 and the signal.
    var code: Int32 {
      switch self {
      case .exited(let code): code
      case .killed(let signal): 128 + signal
      }
    }
  }

  /// Starts a program.
  ///
  /// - Parameters:
  ///   - words: its name, looked for in `PATH` unless it has a slash, and what it is given; at least one.
  ///   - variables: what changes in its environment; nil takes one away.
  ///   - defaults: signals that it meets as if nobody had touched them; the others as this program was given them.
  /// - Throws: `CommandFailure` with the code of shells: 127 if there is no such program, 126 if it cannot be run.
  init(_ words: [String], changing variables: [String: String?], defaults: [Int32]) throws {
    let name = words.first ?? ""
    #if canImport(Darwin)
      var attributes: posix_spawnattr_t?
    #else
      var attributes = posix_spawnattr_t()
    #endif
    var none = sigset_t()
    var touched = sigset_t()
    sigemptyset(&none)
    sigemptyset(&touched)
    for signal in defaults { sigaddset(&touched, signal) }
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &touched)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    var id: pid_t = 0
    var arguments = words.map { strdup($0) } + [nil]
    var environment = Self.environment(changing: variables) + [nil]
    defer { for text in arguments + environment { free(text) } }
    let error = posix_spawnp(&id, name, nil, &attributes, &arguments, &environment)
    guard error == 0 else {
      let reason = error == ENOENT ? "no such program" : String(cString: strerror(error)).lowercased()
      throw CommandFailure(
        code: error == ENOENT ? 127 : 126,
        "\(name): \(reason)" + (error == ENOENT && !name.contains("/") ? " in PATH" : ""))
    }
    self.id = id
  }

  /// Byte for byte what this program was given, but for the changes.
  private static func environment(changing variables: [String: String?]) -> [UnsafeMutablePointer<CChar>?] {
    var kept: [UnsafeMutablePointer<CChar>?] = []
    var next: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = environ
    while let entry = next?.pointee {
      let name = String(decoding: UnsafeRawBufferPointer(start: entry, count: strcspn(entry, "=")), as: UTF8.self)
      if variables[name] == nil { kept.append(strdup(entry)) }
      next = next?.advanced(by: 1)
    }
    for (name, value) in variables.sorted(by: { $0.key < $1.key }) {
      if let value { kept.append(strdup("\(name)=\(value)")) }
    }
    return kept
  }

  /// Its ending, if it has come; nil while it runs. What it returned must not be asked for again.
  func ending() -> Ending? {
    var status: Int32 = 0
    while true {
      let found = waitpid(id, &status, WNOHANG)
      if found == id { break }
      guard found < 0 else { return nil }
      // Whoever was there before it said that nobody waits for children: how it ended nobody knows.
      if errno != EINTR { return .exited(ExitStatus.failed.rawValue) }
    }
    let signal = status & 0x7f
    return signal == 0 ? .exited(status >> 8 & 0xff) : .killed(signal: signal)
  }

  /// Sends it a signal.
  func send(_ signal: Int32) { kill(id, signal) }
}
