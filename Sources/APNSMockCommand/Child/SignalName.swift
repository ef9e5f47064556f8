#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The system's descriptions of signals.
enum SignalName {
  /// Returns the description of a signal, such as `Segmentation fault`.
  static func text(_ number: Int32) -> String { strsignal(number).map { String(cString: $0) } ?? "unknown" }
}
