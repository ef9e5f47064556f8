import NIOPosix

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Resolves host names with the system's resolver, which uses the hosts file and DNS.
enum HostLookup {
  /// Returns the distinct addresses in the system's order.
  ///
  /// - Throws: `LookupFailure` with the system's message.
  static func addresses(of host: String) async throws -> [String] {
    // `getaddrinfo` blocks, so it runs in a thread pool.
    try await NIOThreadPool.singleton.runIfActive { try lookUp(host) }
  }

  private static func lookUp(_ host: String) throws -> [String] {
    var first: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(host, nil, nil, &first)
    guard status == 0 else {
      throw LookupFailure(description: gai_strerror(status).map { String(cString: $0) } ?? "error \(status)")
    }
    defer { freeaddrinfo(first) }
    var addresses: [String] = []
    var next = first
    while let entry = next {
      next = entry.pointee.ai_next
      var text = [CChar](repeating: 0, count: 64)
      let length = socklen_t(text.count)
      guard getnameinfo(entry.pointee.ai_addr, entry.pointee.ai_addrlen, &text, length, nil, 0, NI_NUMERICHOST) == 0
      else { continue }
      let address = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      if !addresses.contains(address) { addresses.append(address) }
    }
    return addresses
  }
}

/// The reason why a name could not be resolved.
struct LookupFailure: Error, CustomStringConvertible {
  let description: String
}
