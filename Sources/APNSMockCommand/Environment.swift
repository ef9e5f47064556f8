#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The environment of this process.
enum Environment {
  /// All environment variables.
  static var variables: [String: String] { ProcessInfo.processInfo.environment }
}
