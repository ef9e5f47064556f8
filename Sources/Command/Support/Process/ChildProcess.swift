import APNSMockClientCommands
import APNSMockPlatformLibc

/// A child process with this program's process group, standard streams, working directory and limits, as `env` would
/// start it.
///
/// Uses `posix_spawn` rather than Foundation's `Process`, whose children inherit the blocked signals of the thread that
/// starts them and therefore ignore SIGTERM.
struct ChildProcess: Sendable {
  /// The process id.
  let id: pid_t

  /// How a process ended.
  enum Exit: Equatable, Sendable {
    case exited(Int32)
    case killed(signal: Int32)

    /// The exit code as shells report it: the program's own, or 128 plus the signal number.
    var code: Int32 {
      switch self {
      case .exited(let code): code
      case .killed(let signal): 128 + signal
      }
    }

    /// Why the process did not succeed, for people; nil if it did.
    var problem: String? {
      switch self {
      case .exited(0): nil
      case .exited(let code): "the program ended with \(code)"
      case .killed(let signal): "the program was killed by signal \(signal) (\(SignalName.text(signal)))"
      }
    }
  }

  /// Starts a program.
  ///
  /// - Parameters:
  ///   - arguments: The program, searched in `PATH` unless it contains a slash, and its arguments; at least one.
  ///   - variables: Changes to the environment; nil removes a variable.
  ///   - defaults: Signals to reset to their default action; the others keep the action this program inherited.
  /// - Throws: `CommandFailure` with a shell's code: 127 if there is no such program, 126 if it cannot be run.
  init(_ arguments: [String], changing variables: [String: String?], defaults: [Int32]) throws {
    let name = arguments.first ?? ""
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
    var argumentList = arguments.map { strdup($0) } + [nil]
    var environment = Self.environment(changing: variables) + [nil]
    defer { for text in argumentList + environment { free(text) } }
    let error = posix_spawnp(&id, name, nil, &attributes, &argumentList, &environment)
    guard error == 0 else {
      let reason = error == ENOENT ? "no such program" : String(cString: strerror(error)).lowercased()
      throw CommandFailure(
        code: error == ENOENT ? 127 : 126,
        "\(name): \(reason)" + (error == ENOENT && !name.contains("/") ? " in PATH" : ""))
    }
    self.id = id
  }

  /// Returns this program's environment, byte for byte, with the changes applied.
  private static func environment(changing variables: [String: String?]) -> [UnsafeMutablePointer<CChar>?] {
    var kept: [UnsafeMutablePointer<CChar>?] = []
    for entry in environmentStrings() {
      let name = String(decoding: UnsafeRawBufferPointer(start: entry, count: strcspn(entry, "=")), as: UTF8.self)
      if variables[name] == nil { kept.append(strdup(entry)) }
    }
    for (name, value) in variables.sorted(by: { $0.key < $1.key }) {
      if let value { kept.append(strdup("\(name)=\(value)")) }
    }
    return kept
  }

  /// Returns how the process ended; nil while it runs. Must not be called again after it has returned a value.
  func exit() -> Exit? {
    var status: Int32 = 0
    while true {
      let found = waitpid(id, &status, WNOHANG)
      if found == id { break }
      guard found < 0 else { return nil }
      // The parent of this program ignored SIGCHLD, so the system discarded the child's status.
      if errno != EINTR { return .exited(ExitStatus.failed.rawValue) }
    }
    let signal = status & 0x7f
    return signal == 0 ? .exited(status >> 8 & 0xff) : .killed(signal: signal)
  }

  /// Sends the process a signal.
  func send(_ signal: Int32) { kill(id, signal) }
}

/// The file descriptors that were open when this program started. Only those are passed to a child: not every library
/// sets `FD_CLOEXEC`, and a child that outlives this program would keep its ports.
struct InheritedFiles: Sendable {
  private let numbers: Set<Int32>

  /// Records the descriptors that are open now.
  init() { numbers = Self.open }

  /// Sets `FD_CLOEXEC` on all descriptors opened since.
  func hideOthers() {
    for number in Self.open.subtracting(numbers) { _ = fcntl(number, F_SETFD, FD_CLOEXEC) }
  }

  private static var open: Set<Int32> {
    guard let names = names(inFolder: "/dev/fd") else { return [0, 1, 2] }
    return Set(names.compactMap(Int32.init))
  }
}

/// The system's descriptions of signals.
enum SignalName {
  /// Returns the description of a signal, such as `Segmentation fault`.
  static func text(_ number: Int32) -> String { strsignal(number).map { String(cString: $0) } ?? "unknown" }
}
