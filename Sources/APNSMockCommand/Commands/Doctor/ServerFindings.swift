import MockAPNS
import TLSEngine

/// Checks the server's TLS, certificate and HTTP/2.
struct ServerFindings {
  let probeResult: ProbeResult
  let diagnosis: Diagnosis

  private var certificate: X509Certificate? { probeResult.certificate.flatMap { try? X509Certificate(der: $0) } }

  private var failure: String? {
    guard case .failed(let text) = probeResult.ending else { return nil }
    return text
  }

  /// Whether the server aborted the handshake because it does not support `h2` (RFC 7301 section 3.2).
  private var refusesHTTP2: Bool { failure?.contains("no application protocol") == true }

  // MARK: - TLS

  /// Returns the result of the TLS check.
  ///
  /// - Parameter plain: The server's response to plain HTTP.
  func tls(plain: AdminClient.Answer?) -> DoctorFinding {
    if let version = probeResult.tls { return .passed(.tls, version) }
    if refusesHTTP2 || certificate != nil {
      return .passed(.tls, "yes, but the handshake failed: \(failure ?? "closed")")
    }
    let first = probeResult.firstBytes
    if let plain { return plainHTTP(plain) }
    if first.count > 8, first[3] == 4, first[5...8].allSatisfy({ $0 == 0 }) {
      return .failed(
        .tls, "HTTP/2 without TLS",
        repair: "APNs requires TLS: connect to a port with TLS, or enable it there")
    }
    if first.first == 21 || first.first == 22 {
      return .failed(
        .tls, failure ?? "the server aborted the handshake",
        repair: "enable TLS 1.2 or 1.3 with common cipher suites on the server")
    }
    if !first.isEmpty {
      return .failed(
        .tls, "the response is not TLS and begins with \(Self.shown(first))",
        repair: "another service uses this port: connect to the address that apns-mock prints at its start (--apns)")
    }
    let seen =
      probeResult.ending == .timedOut ? "accepts connections without a response" : "accepts and closes connections"
    return .failed(
      .tls, seen,
      repair:
        "no TLS 1.2 or 1.3 server uses this port; a container's published port accepts connections even if nothing listens "
        + "in the container: the server must listen on all addresses (--apns 0.0.0.0:PORT)")
  }

  private func plainHTTP(_ plain: AdminClient.Answer) -> DoctorFinding {
    guard plain.body.elementsEqual(#"{"status":"live"}"#.utf8) else {
      return .failed(
        .tls, "plain HTTP",
        repair: "APNs requires TLS: connect to a port with TLS, or configure the proxy there to forward TCP"
      )
    }
    let apns = (diagnosis.known?.apns ?? Configuration().apns).map(\.description).joined(separator: ", ")
    return .failed(
      .tls, "plain HTTP: this is the admin listener of apns-mock", repair: "connect to \(apns) (--apns)")
  }

  private static func shown(_ bytes: [UInt8]) -> String {
    bytes.prefix(8).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
  }

  // MARK: - Certificate

  /// The result of the check of the certificate chain and validity period.
  var chain: DoctorFinding {
    guard let certificate else { return .skipped(.chain, "the handshake ended before the certificate") }
    guard let fault = probeResult.certificateFault else {
      let end = TimeArgument.text(certificate.notAfter)
      return constrainedAddresses ?? .passed(.chain, "issued by \(certificate.issuer), valid until \(end)")
    }
    switch fault.kind {
    case .unknownAuthority: return strange(certificate)
    case .expired, .notYetValid:
      let life = "\(TimeArgument.text(certificate.notBefore)) to \(TimeArgument.text(certificate.notAfter))"
      let now = TimeArgument.text(ServerClock().now)
      return .failed(
        .chain, "\(fault.text): it is valid from \(life), and this machine's clock shows \(now)",
        repair:
          "if the clock is correct, restart apns-mock serve, which renews its certificate and reports an expired CA; if "
          + "not, set the clock")
    case .nameOutsideAuthority:
      return .failed(
        .chain, "the CA's name constraints exclude a name of the certificate: \(fault.text)",
        repair: "create a CA for these names: apns-mock certs --new-ca --san NAME")
    case .other:
      return .failed(
        .chain, fault.text, repair: "create new certificates: apns-mock certs --new-ca; clients must trust the new CA")
    }
  }

  /// The failure for a CA with IP address constraints, which clients built on BoringSSL reject; nil for other CAs.
  private var constrainedAddresses: DoctorFinding? {
    let problem =
      "has IP addresses in its name constraints: clients built on BoringSSL (NIOSSL, curl_cffi, Chrome) reject it"
    let served = diagnosis.known?.authority
    if served?.constrainsAddresses == true {
      return .failed(
        .chain, "the server's CA \(problem)",
        repair:
          "restart apns-mock serve, which re-issues the CA with the same key; if ca-key.pem is missing, create a new CA: "
          + "apns-mock certs --new-ca")
    }
    guard let path = diagnosis.authority, let text = try? Files.text(of: path),
      let trusted = try? X509Certificate.chain(pem: text), trusted.contains(where: \.constrainsAddresses)
    else { return nil }
    let current = diagnosis.known.map {
      "; the running server has a current one: curl http://\($0.admin)/ca.pem -o ca.pem"
    }
    return .failed(
      .chain, "\(path) \(problem)",
      repair:
        "run apns-mock certs for its folder, which re-issues it with the same key; if ca-key.pem is missing, create a new "
        + "CA: apns-mock certs --new-ca\(current ?? "")")
  }

  private func strange(_ certificate: X509Certificate) -> DoctorFinding {
    let trusted = diagnosis.authority.map { "which is not in \($0)" } ?? "and no trusted CA is specified"
    let seen = "issued by \(certificate.issuer), \(trusted)"
    if certificate.issuerOrganization?.hasPrefix("Apple") == true {
      return .failed(
        .chain, "\(seen): this is Apple's own server",
        repair: "map \(diagnosis.serverName) to the mock in the hosts file or by a container's alias")
    }
    if let known = diagnosis.known, known.authority.map(certificate.isIssued(by:)) == true {
      return .failed(
        .chain, seen,
        repair: "download the server's CA and trust it: curl http://\(known.admin)/ca.pem -o ca.pem; --ca ca.pem"
      )
    }
    if certificate.issuerOrganization == CertificateAuthority.organization {
      return .failed(
        .chain, seen,
        repair: "trust ca.pem of that server's certificate folder (--ca FILE), or download it from its admin listener: "
          + "curl http://HOST:8197/ca.pem -o ca.pem")
    }
    return .failed(
      .chain, seen,
      repair:
        "another service or a proxy responds: connect directly to apns-mock, or trust that service's CA (--ca FILE)")
  }

  /// The result of the check of the server's name.
  var name: DoctorFinding {
    guard let certificate else { return .skipped(.name, "the handshake ended before the certificate") }
    let name = diagnosis.serverName
    if probeResult.certificateMatchesName { return .passed(.name, "the certificate contains \(name)") }
    let names = certificate.names.map(\.description).joined(separator: ", ")
    return .failed(
      .name, "the certificate contains \(names.isEmpty ? "no names" : names), not \(name)",
      repair: "start the server with --san \(name), which re-issues its certificate, or use one of its names "
        + "(--server-name)")
  }

  // MARK: - HTTP/2

  /// The result of the check of the negotiated protocol.
  var alpn: DoctorFinding {
    if probeResult.negotiatedProtocol == "h2" { return .passed(.alpn, "h2") }
    guard probeResult.tls != nil || refusesHTTP2 else { return .skipped(.alpn, "the handshake failed") }
    let seen =
      refusesHTTP2
      ? "the server rejected h2"
      : probeResult.negotiatedProtocol.map { "the server selected \($0)" } ?? "the server selected no protocol"
    return .failed(
      .alpn, seen,
      repair: "enable HTTP/2 on the server; a proxy in front of apns-mock must forward TCP, or offer h2 by ALPN")
  }

  /// The result of the comparison of the first SETTINGS with those of APNs (Protocol.md, section 9.1, observed).
  var settings: DoctorFinding {
    guard alpn.result == .passed else { return .skipped(.settings, "no HTTP/2") }
    guard let settings = probeResult.settings else {
      // With TLS 1.3, a server rejects a client certificate only after the handshake.
      if diagnosis.credential?.certificateFiles != nil, failure != nil {
        return .skipped(.settings, "the server ended the connection first: \(failure ?? "")")
      }
      return .failed(
        .settings, failure ?? (probeResult.ending == .timedOut ? "none received" : "the server closed the connection"),
        repair: "another service responds, or the server is stuck: check its log")
    }
    let streams = settings.maxConcurrentStreams.map(String.init) ?? "unlimited"
    let size = settings.maxHeaderListSize.map(String.init) ?? "unlimited"
    let seen = "MAX_CONCURRENT_STREAMS \(streams), MAX_HEADER_LIST_SIZE \(size)"
    guard settings.areAsAPNs else {
      return .failed(
        .settings,
        "\(seen): APNs sends a limit of streams and MAX_HEADER_LIST_SIZE \(ProbeResult.Settings.headerListSizeOfAPNs)",
        repair: "another HTTP/2 server or a proxy responds: connect directly to apns-mock")
    }
    return .passed(.settings, seen)
  }
}
