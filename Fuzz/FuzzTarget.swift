import Foundation

/// A fuzz target: code that processes untrusted input.
protocol FuzzTarget {
  /// Creates the objects needed for all inputs.
  init() throws

  /// Initial inputs that cannot be stored in `Seeds` because they contain keys.
  var seeds: [[UInt8]] { get }

  /// Processes an input. The sanitizers detect crashes, hangs and leaks; further properties are checked with
  /// `expect`.
  func run(_ bytes: UnsafeRawBufferPointer)
}

extension FuzzTarget {
  var seeds: [[UInt8]] { [] }
}

/// All targets.
enum FuzzTargets {
  static var all: [String: any FuzzTarget.Type] {
    [
      "frames": FramesTarget.self, "headers": HeadersTarget.self, "connections": ConnectionsTarget.self,
      "tokens": TokensTarget.self, "certificates": CertificatesTarget.self, "profiles": ProfilesTarget.self,
      "queries": QueriesTarget.self, "payloads": PayloadsTarget.self, "admin": AdminTarget.self,
      "exports": ExportsTarget.self, "stores": StoresTarget.self,
    ]
  }

  /// The target named by `FUZZ_TARGET`. Not isolated: libFuzzer calls back on the thread that started it.
  nonisolated(unsafe) static let chosen = target(named: ProcessInfo.processInfo.environment["FUZZ_TARGET"] ?? "")

  /// Creates the target with this name. Terminates the process if there is none.
  private static func target(named name: String) -> any FuzzTarget {
    guard let type = all[name] else {
      fatalError("FUZZ_TARGET is \"\(name)\", it has to be one of \(all.keys.sorted().joined(separator: ", "))")
    }
    do {
      return try type.init()
    } catch {
      fatalError("\(name): \(error)")
    }
  }
}

/// Terminates the process unless a property holds that must hold for every input.
func expect(_ holds: Bool, _ what: @autoclosure () -> String) {
  if !holds { fatalError(what()) }
}
