internal import COpenSSL

/// What OpenSSL could not do, in words for people: what was tried, and OpenSSL's own reasons.
public struct TLSError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What failed, with the reasons OpenSSL gave in brackets, if it gave any.
  public let description: String

  /// An error about `what`, with everything that waits in the calling thread's OpenSSL error queue, which is empty
  /// afterwards: what stays there would be taken for the failure of the next TLS call on this thread.
  public init(_ what: String) {
    let reasons = Self.drainQueue()
    description = reasons.isEmpty ? what : "\(what) (OpenSSL: \(reasons.joined(separator: "; ")))"
  }

  /// Takes the reasons out of the queue, oldest first, each once.
  private static func drainQueue() -> [String] {
    var reasons: [String] = []
    var detail: UnsafePointer<CChar>?
    var flags: Int32 = 0
    while true {
      let code = ERR_get_error_all(nil, nil, nil, &detail, &flags)
      guard code != 0 else { return reasons }
      var reason = ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(String(code, radix: 16))"
      // The detail is text only when the flag says so, and it is owned by the queue: copied at once.
      if flags & ERR_TXT_STRING != 0, let detail, detail.pointee != 0 {
        reason += ", " + String(cString: detail)
      }
      if !reasons.contains(reason) { reasons.append(reason) }
    }
  }
}
