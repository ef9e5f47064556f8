internal import Hummingbird
internal import NIOCore

/// Access control for the admin API.
///
/// The listener is plain HTTP on loopback and, by default, open to all local programs, which include web pages in a
/// browser. A page must neither read the inbox through its own host name that resolves to the server's address (DNS
/// rebinding, prevented by the check of Host) nor change anything or learn anything by cross-site requests (prevented by
/// the checks of Origin and Sec-Fetch-Site). A token protects listeners that other machines can reach.
///
/// The checks need paths in normal form (`RequestPath`). They apply to every path that is not listed here as public, so
/// that a new route, or an unusual spelling of a path, is protected.
struct AccessRules: Sendable {
  /// Accepted host names in lower case, in addition to loopback names and IP addresses.
  private let hosts: Set<String>
  private let token: [UInt8]?

  init(allowedHosts: [String], token: String?) {
    hosts = Set(allowedHosts.map { $0.lowercased() }).union(["localhost", "apns-mock"])
    self.token = token.map { Array($0.utf8) }
  }

  /// Checks whether a request is allowed.
  ///
  /// - Throws: `Problem` if it is not.
  func check(_ request: Request) throws(Problem) {
    // The framework uses the first Host as the request's authority; an intermediary might use the second.
    guard !request.headers.contains(where: { $0.name.canonicalName == "host" }) else {
      throw .badRequest("the request has more than one Host", hint: "Send one (RFC 9112 section 3.2).")
    }
    let path = request.uri.path
    // Orchestrators use arbitrary host names for these two paths, which reveal nothing.
    if HealthRoutes.paths.contains(path) { return }
    let host = try checkHost(of: request)
    if Self.isPublic(path), request.method == .get || request.method == .head { return }
    try checkOrigin(of: request, host: host)
    try checkFetchSite(of: request)
    try checkToken(of: request)
  }

  /// Returns whether any web page may request a path, without a token: those of the web UI, which contains no secrets and
  /// asks for the token itself, and of the CA certificates, which TLS handshakes reveal.
  private static func isPublic(_ path: String) -> Bool {
    path == "/" || path == "/ca.pem" || path == "/ca-next.pem" || path.hasPrefix(WebUIRoutes.folder)
  }

  private func checkHost(of request: Request) throws(Problem) -> Authority {
    let text = request.head.authority ?? ""
    guard let host = Authority(text), isAllowed(host.name) else {
      throw .forbidden(
        text.isEmpty ? "the request has no Host" : "unknown host name \(text)",
        hint: "Use localhost or an IP address, or start the server with --allow-host NAME.")
    }
    return host
  }

  private func isAllowed(_ name: String) -> Bool {
    hosts.contains(name) || name.hasSuffix(".localhost") || (try? SocketAddress(ipAddress: name, port: 0)) != nil
  }

  /// Rejects requests of web pages of another origin.
  private func checkOrigin(of request: Request, host: Authority) throws(Problem) {
    guard let origin = request.headers[.origin] else { return }
    let parts = origin.split(separator: "://", maxSplits: 1)
    let defaultPort = parts.first == "https" ? 443 : 80
    guard parts.count == 2, parts[0] == "http" || parts[0] == "https", let from = Authority(String(parts[1])),
      from.name == host.name, (from.port ?? defaultPort) == (host.port ?? defaultPort)
    else {
      throw .forbidden(
        "a web page of \(origin) may not use the admin API",
        hint: "Only pages of this server may send Origin. Programs must omit it.")
    }
  }

  /// Rejects requests that a browser sends for a page of another origin without an Origin field, such as those of an
  /// `img` element (W3C Fetch Metadata).
  private func checkFetchSite(of request: Request) throws(Problem) {
    let field = request.headers.first { $0.name.canonicalName == "sec-fetch-site" }
    guard let site = field?.value.lowercased() else { return }
    guard site != "cross-site" && site != "same-site" else {
      throw .forbidden(
        "a web page of another origin may not use the admin API (sec-fetch-site is \(site))",
        hint: "Open the address itself, or use a program that does not send sec-fetch-site.")
    }
  }

  private func checkToken(of request: Request) throws(Problem) {
    guard let token else { return }
    let parts = (request.headers[.authorization] ?? "").split(separator: " ", maxSplits: 1)
    let isBearer = parts.count == 2 && parts[0].lowercased() == "bearer"
    guard isBearer, Self.isEqual(Array(parts[1].utf8), token) else {
      throw Problem(
        status: .unauthorized, detail: isBearer ? "the admin token is wrong" : "the admin token is missing",
        hint: "Send the token that the server was started with (--admin-token): authorization: Bearer TOKEN.",
        headers: [.wwwAuthenticate: "Bearer"])
    }
  }

  /// Compares in constant time, so that a token cannot be guessed byte by byte.
  static func isEqual(_ given: [UInt8], _ token: [UInt8]) -> Bool {
    var difference: UInt8 = given.count == token.count ? 0 : 1
    for (index, byte) in given.enumerated() where !token.isEmpty { difference |= byte ^ token[index % token.count] }
    return difference == 0
  }
}

/// A host name or address with an optional port: `localhost:8197`, `[::1]:8197`.
struct Authority: Equatable {
  /// The host in lower case, without brackets and without a trailing dot.
  let name: String
  let port: Int?

  /// Parses `text`. Returns nil if it is invalid.
  init?(_ text: String) {
    var name = text[...]
    var port: Int?
    if name.hasPrefix("[") {
      guard let end = name.firstIndex(of: "]") else { return nil }
      let rest = name[name.index(after: end)...]
      name = name[..<end].dropFirst()
      if !rest.isEmpty {
        guard rest.hasPrefix(":"), let number = Self.port(rest.dropFirst()) else { return nil }
        port = number
      }
    } else if let colon = name.firstIndex(of: ":") {
      guard let number = Self.port(name[name.index(after: colon)...]) else { return nil }
      port = number
      name = name[..<colon]
    }
    if name.hasSuffix(".") { name = name.dropLast() }
    guard !name.isEmpty else { return nil }
    self.name = name.lowercased()
    self.port = port
  }

  private static func port(_ digits: Substring) -> Int? {
    guard digits.utf8.count <= 5, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(digits)
  }
}
