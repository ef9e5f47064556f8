internal import Hummingbird
internal import NIOCore

/// Who may ask the admin API what.
///
/// The listener is plain HTTP on loopback and, by default, open to every program of the machine. Web pages run there
/// too: a page must neither read the inbox by giving its own host name our address (DNS rebinding, so the Host header is
/// checked) nor change anything by posting to us (so Origin is). A token is for listeners that others can reach.
struct AccessRules: Sendable {
  /// Host names that are accepted besides loopback names and IP addresses, in lower case.
  private let hosts: Set<String>
  private let token: [UInt8]?

  init(allowedHosts: [String], token: String?) {
    hosts = Set(allowedHosts.map { $0.lowercased() }).union(["localhost", "apns-mock"])
    self.token = token.map { Array($0.utf8) }
  }

  /// - Throws: `Problem` if the request may not be answered.
  func check(_ request: Request) throws(Problem) {
    // The first one is the request's authority. A second one would be what somebody in between goes by.
    guard !request.headers.contains(where: { $0.name.canonicalName == "host" }) else {
      throw .badRequest("the request has more than one Host", hint: "Send one (RFC 9112 section 3.2).")
    }
    let path = request.uri.path
    // Orchestrators ask for these two by whatever name they know, and they tell nothing.
    if path == "/livez" || path == "/readyz" { return }
    let host = try checkHost(of: request)
    let isAPI = path.hasPrefix("/api/")
    if isAPI || request.method != .get && request.method != .head { try checkOrigin(of: request, host: host) }
    if isAPI { try checkFetchSite(of: request) }
    // What everybody may see: the page, which has no secrets in it and asks for the token itself, and the certificate
    // that each TLS handshake shows.
    if path != "/" && path != "/ca.pem" && !path.hasPrefix(PageRoutes.folder) { try checkToken(of: request) }
  }

  private func checkHost(of request: Request) throws(Problem) -> Authority {
    let text = request.head.authority ?? ""
    guard let host = Authority(text), isAllowed(host.name) else {
      throw .forbidden(
        text.isEmpty ? "the request has no Host" : "the host name \(text) is not known here",
        hint: "Use localhost or an IP address, or start the server with --allow-host NAME.")
    }
    return host
  }

  private func isAllowed(_ name: String) -> Bool {
    hosts.contains(name) || name.hasSuffix(".localhost") || (try? SocketAddress(ipAddress: name, port: 0)) != nil
  }

  /// Looks at the page that asks, for what only pages of this server may do.
  ///
  /// - Throws: `Problem` if it is one of another server.
  func checkOrigin(of request: Request) throws(Problem) {
    try checkOrigin(of: request, host: try checkHost(of: request))
  }

  private func checkOrigin(of request: Request, host: Authority) throws(Problem) {
    guard let origin = request.headers[.origin] else { return }
    let parts = origin.split(separator: "://", maxSplits: 1)
    let defaultPort = parts.first == "https" ? 443 : 80
    guard parts.count == 2, parts[0] == "http" || parts[0] == "https", let from = Authority(String(parts[1])),
      from.name == host.name, (from.port ?? defaultPort) == (host.port ?? defaultPort)
    else {
      throw .forbidden(
        "a web page of \(origin) may not use the admin API",
        hint: "Only pages of this server may. Programs leave Origin out.")
    }
  }

  /// Refuses requests that a browser sends for a page of another origin without naming that origin, such as those of an
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

  /// Takes the same time wherever the two differ, so that a token cannot be guessed byte by byte.
  static func isEqual(_ given: [UInt8], _ token: [UInt8]) -> Bool {
    var difference: UInt8 = given.count == token.count ? 0 : 1
    for (index, byte) in given.enumerated() where !token.isEmpty { difference |= byte ^ token[index % token.count] }
    return difference == 0
  }
}

/// A host name or address, and a port where one is said: `localhost:8197`, `[::1]:8197`.
struct Authority: Equatable {
  /// In lower case, without brackets and without a dot at its end.
  let name: String
  let port: Int?

  /// Nil if `text` is none.
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
