import Foundation

/// One place where bytes of strangers come in.
protocol FuzzTarget {
  /// What has to be made before the first input.
  init() throws

  /// Inputs to begin with that cannot lie in `Seeds`, because keys are part of them.
  var seeds: [[UInt8]] { get }

  /// Lets the sources work on an input. A crash, a hang, a leak are found by themselves; what should hold beyond that is
  /// said by `expect`.
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
      "exports": ExportsTarget.self,
    ]
  }

  // libFuzzer calls on the thread it was called on.
  /// The one that `FUZZ_TARGET` names.
  nonisolated(unsafe) static let chosen = target(named: ProcessInfo.processInfo.environment["FUZZ_TARGET"] ?? "")

  /// One of them. Ends the process if there is none of that name.
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

/// Ends the process unless something holds that has to hold for every input.
func expect(_ holds: Bool, _ what: @autoclosure () -> String) {
  if !holds { fatalError(what()) }
}
