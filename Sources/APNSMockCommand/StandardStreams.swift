#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The two streams of the program: data goes to standard output, words go to standard error.
///
/// Each call is one `write`, so that lines of several threads do not mix and nothing is left in a buffer at the end.
enum StandardStream: Int32 {
  case output = 1
  case error = 2

  /// Whether a person looks at it.
  var isTerminal: Bool { isatty(rawValue) != 0 }

  /// Whether colours are welcome (https://no-color.org).
  var takesColours: Bool {
    func isSet(_ name: String) -> Bool { getenv(name).map { $0.pointee != 0 } ?? false }
    return isTerminal && !isSet("NO_COLOR") && getenv("TERM").map { String(cString: $0) } != "dumb"
  }

  /// - Returns: whether somebody reads it.
  @discardableResult
  func write(_ bytes: some Collection<UInt8>) -> Bool {
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { systemWrite(rawValue, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      // Nobody reads it any more (`apns-mock ls | head -1`): there is nobody to tell either.
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  /// Writes a line.
  func line(_ text: String) { write(Array(text.utf8) + [UInt8(ascii: "\n")]) }
}

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
  write(descriptor, bytes, count)
}
