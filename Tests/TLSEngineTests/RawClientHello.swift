/// A hand-written ClientHello (RFC 5246 section 7.4.1.2, RFC 8446 section 4.1.2) with contents that our own client
/// never sends. A TLS 1.2 server responds in plain text up to its certificate.
struct RawClientHello {
  var serverName: String? = "localhost"
  /// ALPN names; nil to omit the extension.
  var protocols: [String]?
  /// Offers TLS 1.3 too, without a key share, so that the server has to send a HelloRetryRequest.
  var asksForRetry = false

  /// The bytes of the record.
  var bytes: [UInt8] {
    var extensions: [[UInt8]] = []
    if let serverName { extensions.append([0, 0] + counted(2, counted(2, [0] + counted(2, Array(serverName.utf8))))) }
    if let protocols {
      extensions.append([0, 16] + counted(2, counted(2, protocols.flatMap { counted(1, Array($0.utf8)) })))
    }
    if asksForRetry {
      extensions += [[0, 43] + counted(2, counted(1, [3, 4])), [0, 51] + counted(2, counted(2, []))]
    }
    // Groups x25519 and P-256; signatures RSA-PSS and ECDSA with SHA-256.
    extensions.append([0, 10] + counted(2, counted(2, [0, 29, 0, 23])))
    extensions.append([0, 13] + counted(2, counted(2, [8, 4, 4, 3])))
    // Version, random, no session, AES-128-GCM with TLS 1.3, ECDHE and RSA, ECDHE and ECDSA, no compression.
    let body =
      [3, 3] + [UInt8](repeating: 7, count: 32) + [0] + counted(2, [0x13, 1, 0xC0, 0x2F, 0xC0, 0x2B]) + [1, 0]
      + counted(2, extensions.flatMap(\.self))
    return [22, 3, 1] + counted(2, [1] + counted(3, body))
  }

  /// Returns bytes prefixed by their count.
  private func counted(_ size: Int, _ bytes: [UInt8]) -> [UInt8] {
    (0..<size).map { UInt8(truncatingIfNeeded: bytes.count >> (8 * (size - 1 - $0))) } + bytes
  }
}
