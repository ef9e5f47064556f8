#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The system's words for a signal.
enum SignalName {
  /// `Segmentation fault`.
  static func text(_ number: Int32) -> String { strsignal(number).map { String(cString: $0) } ?? "unknown" }
}
