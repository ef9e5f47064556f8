internal import COpenSSL

/// An OpenSSL failure: a description of the failed operation and OpenSSL's reasons.
public struct TLSError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The failed operation, followed by OpenSSL's reasons in parentheses, if there are any.
  public let description: String

  /// Creates an error about `what` with the reasons in the calling thread's OpenSSL error queue, and clears the
  /// queue: remaining entries would be attributed to the next TLS call on this thread.
  public init(_ what: String) {
    let reasons = Self.drainQueue()
    description = reasons.isEmpty ? what : "\(what) (OpenSSL: \(reasons.joined(separator: "; ")))"
  }

  /// Removes and returns the distinct reasons in the queue, oldest first.
  private static func drainQueue() -> [String] {
    var reasons: [String] = []
    var detail: UnsafePointer<CChar>?
    var flags: Int32 = 0
    while true {
      let code = ERR_get_error_all(nil, nil, nil, &detail, &flags)
      guard code != 0 else { return reasons }
      var reason = ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(String(code, radix: 16))"
      // The detail is text only if the flag says so. The queue owns it, so it is copied at once.
      if flags & ERR_TXT_STRING != 0, let detail, detail.pointee != 0 {
        reason += ", " + String(cString: detail)
      }
      if !reasons.contains(reason) { reasons.append(reason) }
    }
  }
}
