internal import APNSMockFaultModel
internal import APNSMockHTTPMessage
package import APNSMockNotation
package import APNSMockTLSEngine
import NIOCore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The real service, or a server that replaces it, to which requests are forwarded, and how it is reached.
package struct UpstreamSettings: Sendable {
  /// The maximum number of connections that can be configured.
  package static let maxConnections = 16

  /// The address of the service.
  package let endpoint: MockServer.Endpoint
  /// The value of `:authority` of requests to the service.
  package let authority: String
  /// PEM files of the CAs to trust; empty for those of the system.
  package var authorities: [String] = []
  /// The PEM files of a provider certificate; nil to connect without one.
  package var certificate: (chain: String, key: String)?
  /// The maximum number of connections at once.
  package var connections = 2
  /// The topics that may be forwarded; empty for all.
  package var allowedTopics: [TextPattern] = []
  /// The device tokens that may be forwarded; empty for all.
  package var allowedTokens: [TextPattern] = []
  /// Whether device tokens that upstream rejects are registered with that state.
  package var learnsTokens = true
  /// The proxy through which connections are made; nil for direct ones.
  package var proxy: HTTPProxy?

  /// Creates settings for a service.
  package init(endpoint: MockServer.Endpoint) {
    self.endpoint = endpoint
    authority =
      if endpoint.port != 443 {
        endpoint.description
      } else {
        endpoint.host.contains(":") ? "[\(endpoint.host)]" : endpoint.host
      }
  }

  /// Parses `sandbox`, `production` or `https://HOST[:PORT]`; nil for any other text.
  package init?(_ text: String) {
    switch text {
    case "sandbox": self.init(endpoint: MockServer.Endpoint(host: "api.sandbox.push.apple.com", port: 443))
    case "production": self.init(endpoint: MockServer.Endpoint(host: "api.push.apple.com", port: 443))
    default:
      guard text.hasPrefix("https://") else { return nil }
      var rest = text.dropFirst("https://".count)
      if rest.hasSuffix("/") { rest = rest.dropLast() }
      guard !rest.contains(where: { "/?#@ ".contains($0) }) else { return nil }
      let hasPort = rest.hasPrefix("[") ? !rest.hasSuffix("]") : rest.contains(":")
      guard let endpoint = MockServer.Endpoint(hasPort ? String(rest) : "\(rest):443"), endpoint.port > 0 else {
        return nil
      }
      self.init(endpoint: endpoint)
    }
  }

  /// The service's URL, with the proxy if there is one.
  package var description: String { "https://\(authority)\(proxyText)" }

  /// The service's address in messages about connections, with the proxy if there is one.
  var peer: String { "\(endpoint)\(proxyText)" }

  private var proxyText: String { proxy.map { " through the proxy \($0.endpoint)" } ?? "" }

  /// Creates the TLS settings of connections to the service.
  ///
  /// - Throws: `TLSError` that names the unusable file.
  package func tlsContext() throws -> TLSContext {
    try TLSContext(clientTrusting: authorities, certificate: certificate, trustsSystem: authorities.isEmpty)
  }

  /// Checks that pushes are not forwarded to the server itself, again and again.
  ///
  /// - Throws: `UpstreamError` if the service is one of the server's listeners.
  func check(isNoneOf listeners: [MockServer.Endpoint]) throws(UpstreamError) {
    func addresses(_ host: String) -> Set<String> { host == "localhost" ? ["127.0.0.1", "::1", host] : [host] }
    // A name that resolves to this machine is not recognized: resolving it would take time.
    let isOfMachine =
      endpoint.isLoopback
      || (try? System.enumerateDevices())?.contains { $0.address?.ipAddress == endpoint.host } == true
    let isOwn = listeners.contains {
      $0.port == endpoint.port
        && (!addresses($0.host).isDisjoint(with: addresses(endpoint.host))
          || isOfMachine && ["0.0.0.0", "::"].contains($0.host))
    }
    if isOwn, proxy == nil {
      throw UpstreamError("--upstream \(endpoint) is this server: name the service to forward pushes to")
    }
  }

  /// Whether a push may leave the machine.
  func allows(topic: UnsafeRawBufferPointer?, deviceToken: UnsafeRawBufferPointer?) -> Bool {
    func isAllowed(_ text: UnsafeRawBufferPointer?, by patterns: [TextPattern]) -> Bool {
      guard !patterns.isEmpty else { return true }
      return text.map { text in patterns.contains { $0.matches(text) } } ?? false
    }
    return isAllowed(topic, by: allowedTopics) && isAllowed(deviceToken, by: allowedTokens)
  }

  /// Returns the header fields to send for those of a provider: all of them, byte for byte and in order, except that
  /// `:scheme`, `:authority` and `host` name the service.
  func headers(from packed: UnsafeRawBufferPointer) -> HeaderList {
    // The names and lengths of both fields with the authority fit as well.
    var headers = HeaderList(capacity: packed.count + 2 * authority.utf8.count + 32)
    var hasAuthority = false
    func append(_ name: UnsafeRawBufferPointer, _ value: String) {
      var value = value
      value.withUTF8 { _ = headers.append(name: name, value: UnsafeRawBufferPointer($0)) }
    }
    HeaderList.forEachField(in: packed) { name, value in
      let name = UnsafeRawBufferPointer(rebasing: packed[name.indices])
      if name.equals(":scheme") {
        append(name, "https")
      } else if name.equals(":authority") {
        hasAuthority = true
        append(name, authority)
      } else if name.equals("host") {
        // Allowed only if it equals `:authority` (RFC 9113 section 8.3.1).
        append(name, authority)
      } else {
        headers.append(name: name, value: UnsafeRawBufferPointer(rebasing: packed[value.indices]))
      }
    }
    guard !hasAuthority else { return headers }
    // A request with `host` alone, as in Apple's samples (Protocol.md, section 1.2).
    var complete = HeaderList([(":authority", authority)])
    headers.bytes.withUnsafeBytes { _ = complete.append(packed: $0, count: headers.count) }
    return complete
  }
}

/// An HTTP proxy that makes connections with CONNECT.
package struct HTTPProxy: Sendable, Equatable {
  /// The proxy's address.
  package var endpoint: MockServer.Endpoint
  /// `user:password` of the proxy's URL, without percent-encoding; nil without one.
  package var credentials: String?

  /// Parses `http://[USER:PASSWORD@]HOST[:PORT]`; nil for any other text.
  package init?(_ text: String) {
    guard text.hasPrefix("http://") || !text.contains("://") else { return nil }
    var rest = text.hasPrefix("http://") ? text.dropFirst("http://".count) : text[...]
    if rest.hasSuffix("/") { rest = rest.dropLast() }
    if let at = rest.lastIndex(of: "@") {
      credentials = PercentEncoding.decode(rest[..<at])
      rest = rest[rest.index(after: at)...]
    }
    guard let endpoint = MockServer.Endpoint(rest) ?? MockServer.Endpoint("\(rest):80"), endpoint.port > 0 else {
      return nil
    }
    self.endpoint = endpoint
  }

  /// Returns the proxy that `HTTPS_PROXY` and `NO_PROXY` (in either case) determine for a service; nil for a direct
  /// connection.
  ///
  /// `NO_PROXY` is a list with commas or spaces: `*`, a domain with or without `.` or `*.` in front, which includes its
  /// subdomains, an IP address or a block of them such as `10.0.0.0/8`, each with or without a port.
  ///
  /// - Throws: `UpstreamError` if the variable is not the URL of an HTTP proxy.
  package static func chosen(
    for endpoint: MockServer.Endpoint, _ environment: [String: String]
  ) throws(UpstreamError) -> HTTPProxy? {
    func variable(_ name: String) -> (name: String, value: String)? {
      for name in [name, name.lowercased()] {
        let words = (environment[name] ?? "").split(whereSeparator: \.isWhitespace)
        if !words.isEmpty { return (name, words.joined(separator: " ")) }
      }
      return nil
    }
    guard let (name, text) = variable("HTTPS_PROXY") else { return nil }
    let excluded = (variable("NO_PROXY")?.value ?? "").split { $0 == "," || $0 == " " }
    if excluded.contains(where: { isExcluded(endpoint, by: $0.lowercased()) }) { return nil }
    guard let proxy = HTTPProxy(text) else {
      throw UpstreamError("\(name) must be a URL such as http://proxy.example.com:3128")
    }
    return proxy
  }

  /// Whether an element of `NO_PROXY`, in lowercase, includes a service.
  private static func isExcluded(_ endpoint: MockServer.Endpoint, by element: String) -> Bool {
    var name = element[...]
    let hasPort = name.hasPrefix("[") ? !name.hasSuffix("]") : name.count { $0 == ":" } == 1
    if hasPort, let colon = name.lastIndex(of: ":") {
      guard Int(name[name.index(after: colon)...]) == endpoint.port else { return false }
      name = name[..<colon]
    }
    if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
    if let address = IPAddress(endpoint.host) {
      return (try? AddressBlock(String(name), allowsHostBits: true))?.contains(address) ?? (name == "*")
    }
    if name.hasPrefix("*.") { name = name.dropFirst() }
    let host = endpoint.host.lowercased()
    let domain = name.drop { $0 == "." }
    return name == "*" || !domain.isEmpty && (host == domain || host.hasSuffix(".\(domain)"))
  }

  /// The request for a tunnel to an address.
  func request(for target: MockServer.Endpoint) -> String {
    let authorization =
      credentials.map { "proxy-authorization: Basic \(Data($0.utf8).base64EncodedString())\r\n" } ?? ""
    return "CONNECT \(target) HTTP/1.1\r\nhost: \(target)\r\n\(authorization)\r\n"
  }
}

/// The reason for which upstream cannot be used, in one sentence.
package struct UpstreamError: Error, CustomStringConvertible, Sendable {
  package let description: String

  /// Creates an error.
  package init(_ description: String) { self.description = description }
}
