internal import MockAPNS
internal import APNSMockTLSEngine

/// Where pushes are sent, and which of them.
package struct WebhookSettings: Sendable {
  /// The URL to which each push is sent; nil for none.
  package var url: WebhookURL?
  /// A query that selects the pushes; empty for all.
  package var filter = ""
  /// The PEM files of the CAs to trust; empty for those of the system.
  package var authorities: [String] = []
  /// Whether the payloads of the pushes are sent as well.
  package var includesPayload = false
  /// Whether addresses are allowed that are neither loopback nor private.
  package var allowsAnyAddress = false

  /// Creates settings without a URL.
  package init() {}

  /// Creates the TLS settings of connections; nil if the URL's scheme is `http`.
  ///
  /// - Throws: `TLSError` that names the unusable file.
  func tlsContext() throws -> TLSContext? {
    guard url?.isSecure == true else { return nil }
    return try TLSContext(clientTrusting: authorities, trustsSystem: authorities.isEmpty, offersHTTP2: false)
  }
}

/// A URL with the scheme `http` or `https`.
package struct WebhookURL: Sendable, Equatable {
  /// The server; the port is that of the scheme unless the URL has one.
  let endpoint: MockServer.Endpoint
  /// Whether the scheme is `https`.
  package let isSecure: Bool
  /// The host and port as written, for the header field `host`.
  let authority: String
  /// The path and the query.
  let path: String

  /// Parses a URL. Returns nil if it has another scheme, a user name or a fragment, or is invalid.
  package init?(_ text: String) {
    isSecure = text.hasPrefix("https://")
    let scheme = isSecure ? "https://" : "http://"
    guard text.hasPrefix(scheme), text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }), !text.contains("#") else {
      return nil
    }
    let rest = text.dropFirst(scheme.count)
    let end = rest.firstIndex { "/?".contains($0) } ?? rest.endIndex
    let authority = rest[..<end]
    guard !authority.contains("@"),
      let endpoint = MockServer.Endpoint(authority) ?? MockServer.Endpoint(authority + (isSecure ? ":443" : ":80")),
      endpoint.port > 0
    else { return nil }
    self.endpoint = endpoint
    self.authority = String(authority)
    path = (rest[end...].hasPrefix("/") ? "" : "/") + rest[end...]
  }
}
