import APNSMockRules
import MockAPNS
import HTTPTypes
import NIOPosix
import APNSMockNotation
import APNSMockTLSEngine

// MARK: - DNS and TCP

extension Diagnosis {
  /// Resolves the host name.
  mutating func resolve() async -> Probe.Outcome {
    guard !endpoint.isAddress else {
      addresses = [endpoint.host]
      return .passed("\(endpoint.host) is an address")
    }
    do {
      addresses = try await HostLookup.addresses(of: endpoint.host)
      return .passed("\(endpoint.host) is \(addresses.joined(separator: ", "))")
    } catch {
      return .failed(
        "\(endpoint.host): \(error)",
        repair: "map the name to the server in the hosts file (127.0.0.1 \(endpoint.host)) or by a container's alias, "
          + "or connect to an address: --apns 127.0.0.1:\(endpoint.port) --server-name \(endpoint.host)")
    }
  }

  /// Tries the addresses in order, and inspects and pushes to the first server that accepts a connection.
  ///
  /// - Throws: `TLSError` for invalid certificate files.
  mutating func connect() async throws -> Probe.Outcome {
    var failures: [(endpoint: MockServer.Endpoint, failure: ConnectFailure)] = []
    for address in addresses {
      let endpoint = MockServer.Endpoint(host: address, port: endpoint.port)
      var client = PushClient(
        endpoint: endpoint, serverName: serverName, authorities: authority.map { [$0] } ?? [],
        certificate: credential?.certificateFiles)
      client.timeout = timeout
      do {
        connection = try await client.probe(sending: push)
        let others = failures.map { "; \($0.endpoint.host): \($0.failure.text)" }.joined()
        return .passed(endpoint.description + others)
      } catch let error as TLSError {
        throw error
      } catch {
        failures.append((endpoint, ConnectFailure(error)))
      }
    }
    return .failed(
      failures.map { "\($0.endpoint): \($0.failure.text)" }.joined(separator: ", "),
      repair: connectRepair(isRefused: failures.contains { $0.failure.kind == .refused }))
  }

  private func connectRepair(isRefused: Bool) -> String {
    if let known, !known.apns.isEmpty, !known.apns.contains(endpoint) {
      let addresses = known.apns.map(\.description).joined(separator: ", ")
      return "the server whose admin API is on \(known.admin) listens on \(addresses): connect there (--apns)"
    }
    if isRefused {
      return "nothing listens there: start apns-mock serve --apns \(endpoint); in a container, it must listen on "
        + "0.0.0.0:\(endpoint.port) and the port must be published"
    }
    return "there is no route: check the address and firewalls; a server for other machines and containers must listen "
      + "on 0.0.0.0:\(endpoint.port)"
  }

  /// The push to send; nil without a credential.
  private var push: PushClient.Push? {
    guard let credential else { return nil }
    let type = PushType(suffixOf: topic) ?? .alert
    var headers = [("apns-topic", topic), ("apns-push-type", type.text)]
    if case .token(let jwt, _) = credential { headers.insert(("authorization", "bearer \(jwt)"), at: 0) }
    return PushClient.Push(
      deviceToken: String.randomDeviceToken(digits: 64), headers: headers,
      payload: Array(#"{"aps":{"alert":"apns-mock doctor"}}"#.utf8))
  }
}

// MARK: - TLS

extension ProbeResult {
  /// The message of the error that ended the connection.
  var failure: String? {
    guard case .failed(let text) = termination else { return nil }
    return text
  }

  /// The server's certificate, if it was received and is readable.
  var serverCertificate: X509Certificate? { certificate.flatMap { try? X509Certificate(der: $0) } }

  /// Whether the server aborted the handshake because it does not support `h2` (RFC 7301 section 3.2).
  var rejectsHTTP2: Bool { failure?.contains("no application protocol") == true }
}

extension Diagnosis {
  /// Checks that the server responded with TLS; otherwise identifies the protocol by its first bytes.
  func checkTLS() async -> Probe.Outcome {
    if let version = connection.tls { return .passed(version) }
    if connection.rejectsHTTP2 || connection.serverCertificate != nil {
      return .passed("yes, but the handshake failed: \(connection.failure ?? "closed")")
    }
    let first = connection.firstBytes
    if let listener = otherListener(first) { return listener }
    if let response = await plainHTTPResponse() { return plainHTTP(response) }
    // The header of a SETTINGS frame on stream 0.
    if first.count > 8, first[3] == 4, first[5...8].allSatisfy({ $0 == 0 }) {
      return .failed(
        "HTTP/2 without TLS", repair: "APNs requires TLS: connect to a port with TLS, or enable it there")
    }
    // A TLS alert or handshake record.
    if first.first == 21 || first.first == 22 {
      return .failed(
        connection.failure ?? "the server aborted the handshake",
        repair: "enable TLS 1.2 or 1.3 with common cipher suites on the server")
    }
    if !first.isEmpty {
      let bytes = first.prefix(8).map { Hexadecimal.text([$0]) }.joined(separator: " ")
      return .failed(
        "the response is not TLS and begins with \(bytes)",
        repair: "another service uses this port: connect to the address that apns-mock prints at its start (--apns)")
    }
    return .failed(
      connection.termination == .timedOut
        ? "accepts connections without a response" : "accepts and closes connections",
      repair:
        "no TLS 1.2 or 1.3 server uses this port; a container's published port accepts connections even if nothing "
        + "listens in the container: the server must listen on all addresses (--apns 0.0.0.0:PORT)")
  }

  /// Recognizes a listener of apns-mock without TLS by its response to a TLS handshake.
  private func otherListener(_ first: [UInt8]) -> Probe.Outcome? {
    let text = String(decoding: first, as: UTF8.self)
    let apns = (known?.apns ?? MockServer.Configuration().apns).map(\.description).joined(separator: ", ")
    if text.contains("server: \(ListenerName.cleartext)") {
      return .failed(
        "no TLS: this is a cleartext listener of apns-mock (--apns-plain)",
        repair:
          "configure the provider with http://\(endpoint) and HTTP/2 with prior knowledge, or connect to \(apns) (--apns)"
      )
    }
    guard text.contains("server: \(ListenerName.proxy)") else { return nil }
    return .failed(
      "no TLS: this is the CONNECT proxy of apns-mock (--proxy)",
      repair: "configure the provider with http://\(endpoint) as its HTTP proxy, or connect to \(apns) (--apns)")
  }

  /// Returns the response to a plain HTTP request, if any.
  private func plainHTTPResponse() async -> AdminClient.Response? {
    for address in addresses {
      var client = AdminClient(endpoint: MockServer.Endpoint(host: address, port: endpoint.port), token: nil)
      client.timeout = min(timeout, .seconds(2))
      if let response = try? await client.request(.get, "/livez") { return response }
    }
    return nil
  }

  private func plainHTTP(_ response: AdminClient.Response) -> Probe.Outcome {
    guard response.body.elementsEqual(#"{"status":"live"}"#.utf8) else {
      return .failed(
        "plain HTTP",
        repair: "APNs requires TLS: connect to a port with TLS, or configure the proxy there to forward TCP"
      )
    }
    let apns = (known?.apns ?? MockServer.Configuration().apns).map(\.description).joined(separator: ", ")
    return .failed("plain HTTP: this is the admin listener of apns-mock", repair: "connect to \(apns) (--apns)")
  }
}

// MARK: - Host names

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
