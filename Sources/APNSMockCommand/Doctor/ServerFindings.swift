import MockAPNS
import TLSEngine

/// What the server itself shows: TLS, its certificate, HTTP/2.
struct ServerFindings {
  let sighting: ServerSighting
  let examination: Examination

  private var certificate: X509Certificate? { sighting.certificate.flatMap { try? X509Certificate(der: $0) } }

  private var failure: String? {
    guard case .failed(let text) = sighting.ending else { return nil }
    return text
  }

  /// Whether the server ended the handshake because `h2` is nothing to it (RFC 7301 section 3.2).
  private var refusesHTTP2: Bool { failure?.contains("no application protocol") == true }

  // MARK: - TLS

  /// Whether what answers is TLS.
  ///
  /// - Parameter plain: what it answered to plain HTTP.
  func tls(plain: AdminClient.Answer?) -> DoctorFinding {
    if let version = sighting.tls { return .passed(.tls, version) }
    if refusesHTTP2 || certificate != nil {
      return .passed(.tls, "yes, but the handshake failed: \(failure ?? "closed")")
    }
    let first = sighting.firstBytes
    if let plain { return plainHTTP(plain) }
    if first.count > 8, first[3] == 4, first[5...8].allSatisfy({ $0 == 0 }) {
      return .failed(
        .tls, "HTTP/2 without TLS",
        repair: "APNs speaks TLS only: connect to the port that has TLS, or switch it on there")
    }
    if first.first == 21 || first.first == 22 {
      return .failed(
        .tls, failure ?? "the server ended the handshake",
        repair: "let the server take TLS 1.2 or 1.3 with the cipher suites that are usual today")
    }
    if !first.isEmpty {
      return .failed(
        .tls, "an answer that is not TLS, beginning with \(Self.shown(first))",
        repair: "another service has this port: connect to the one that apns-mock says at its start (--apns)")
    }
    let seen =
      sighting.ending == .timedOut ? "takes connections and says nothing" : "takes connections and closes them again"
    return .failed(
      .tls, seen,
      repair:
        "no TLS 1.2 or 1.3 is behind this port; a published one that leads to a container takes connections even if "
        + "nothing listens in there: the server has to listen on all its addresses (--apns 0.0.0.0:PORT)")
  }

  private func plainHTTP(_ plain: AdminClient.Answer) -> DoctorFinding {
    guard plain.body.elementsEqual(#"{"status":"live"}"#.utf8) else {
      return .failed(
        .tls, "plain HTTP",
        repair: "APNs speaks TLS only: connect to the port that has TLS, or let the proxy there pass TCP on as it comes"
      )
    }
    let apns = (examination.known?.apns ?? Configuration().apns).map(\.description).joined(separator: ", ")
    return .failed(
      .tls, "plain HTTP: this is the admin listener of apns-mock", repair: "providers connect to \(apns) (--apns)")
  }

  private static func shown(_ bytes: [UInt8]) -> String {
    bytes.prefix(8).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
  }

  // MARK: - Certificate

  /// Whether the server's certificate comes from the trusted CA, and is in time.
  var chain: DoctorFinding {
    guard let certificate else { return .skipped(.chain, "the handshake ended before a certificate came") }
    guard let fault = sighting.certificateFault else {
      let end = TimeArgument.text(certificate.notAfter)
      return constrainedAddresses ?? .passed(.chain, "issued by \(certificate.issuer), good until \(end)")
    }
    switch fault.kind {
    case .unknownAuthority: return strange(certificate)
    case .expired, .notYetValid:
      let life = "\(TimeArgument.text(certificate.notBefore)) to \(TimeArgument.text(certificate.notAfter))"
      let now = TimeArgument.text(ServerClock().now)
      return .failed(
        .chain, "\(fault.text): it is good from \(life), and this machine's clock shows \(now)",
        repair:
          "if the clock is right, start apns-mock serve again: it renews its certificate, and says what to do if the "
          + "CA has ended; if not, set the clock")
    case .nameOutsideAuthority:
      return .failed(
        .chain, "its CA may not vouch for the names it bears: \(fault.text)",
        repair: "make a CA that may: apns-mock certs --new-ca --san NAME")
    case .other:
      return .failed(
        .chain, fault.text, repair: "make new certificates: apns-mock certs --new-ca; clients have to trust the new CA")
    }
  }

  /// A failure if the CA is one that clients built on BoringSSL refuse; nil if it is not.
  private var constrainedAddresses: DoctorFinding? {
    let problem =
      "has IP addresses among its name constraints: clients built on BoringSSL (NIOSSL, curl_cffi, Chrome) refuse it"
    let served = examination.known?.authority
    if served?.constrainsAddresses == true {
      return .failed(
        .chain, "the server's CA \(problem)",
        repair:
          "start apns-mock serve again: it re-issues the CA with the same key; if ca-key.pem is missing, make a new CA: "
          + "apns-mock certs --new-ca")
    }
    guard let path = examination.authority, let text = try? Files.text(of: path),
      let trusted = try? X509Certificate.chain(pem: text), trusted.contains(where: \.constrainsAddresses)
    else { return nil }
    let current = examination.known.map {
      "; the running server has a current one: curl http://\($0.admin)/ca.pem -o ca.pem"
    }
    return .failed(
      .chain, "\(path) \(problem)",
      repair:
        "run apns-mock certs for its folder, which re-issues it with the same key; if ca-key.pem is missing, make a new "
        + "CA: apns-mock certs --new-ca\(current ?? "")")
  }

  private func strange(_ certificate: X509Certificate) -> DoctorFinding {
    let trusted = examination.authority.map { "which is not in \($0)" } ?? "and there is no CA here to trust"
    let seen = "issued by \(certificate.issuer), \(trusted)"
    if certificate.issuerOrganization?.hasPrefix("Apple") == true {
      return .failed(
        .chain, "\(seen): this is Apple's own server",
        repair: "lead \(examination.serverName) to the mock by a line in the hosts file or a container's alias")
    }
    if let known = examination.known, known.authority.map(certificate.isIssued(by:)) == true {
      return .failed(
        .chain, seen,
        repair: "the server hands out its CA: curl http://\(known.admin)/ca.pem -o ca.pem; trust that one (--ca ca.pem)"
      )
    }
    if certificate.issuerOrganization == CertificateAuthority.organization {
      return .failed(
        .chain, seen,
        repair: "trust the ca.pem of the folder that server was started with (--ca FILE); it also hands it out on its "
          + "admin listener: curl http://HOST:8197/ca.pem -o ca.pem")
    }
    return .failed(
      .chain, seen,
      repair:
        "another service, or a proxy, answers there: connect to apns-mock itself, or trust that one's CA (--ca FILE)")
  }

  /// Whether the certificate bears the server's name.
  var name: DoctorFinding {
    guard let certificate else { return .skipped(.name, "the handshake ended before a certificate came") }
    let name = examination.serverName
    if sighting.bearsName { return .passed(.name, "the certificate bears \(name)") }
    let names = certificate.names.map(\.description).joined(separator: ", ")
    return .failed(
      .name, "the certificate does not bear \(name), but \(names.isEmpty ? "no name" : names)",
      repair: "start the server with --san \(name), which makes it a new certificate; or connect by one of those names "
        + "(--server-name)")
  }

  // MARK: - HTTP/2

  /// Whether HTTP/2 was agreed on.
  var alpn: DoctorFinding {
    if sighting.negotiatedProtocol == "h2" { return .passed(.alpn, "h2") }
    guard sighting.tls != nil || refusesHTTP2 else { return .skipped(.alpn, "the handshake failed") }
    let seen =
      refusesHTTP2
      ? "the server refused h2"
      : sighting.negotiatedProtocol.map { "the server chose \($0)" } ?? "the server chose nothing"
    return .failed(
      .alpn, seen,
      repair: "let what answers there speak HTTP/2; a proxy in front of apns-mock has to pass TCP on as it comes, or "
        + "offer h2 by ALPN")
  }

  /// Whether the first SETTINGS are such as APNs sends (APNS.md section 9.1, observed).
  var settings: DoctorFinding {
    guard alpn.result == .passed else { return .skipped(.settings, "no HTTP/2") }
    guard let settings = sighting.settings else {
      // With TLS 1.3 a server says only after the handshake what it thinks of a certificate.
      if examination.credential?.certificateFiles != nil, failure != nil {
        return .skipped(.settings, "the server ended the connection first: \(failure ?? "")")
      }
      return .failed(
        .settings, failure ?? (sighting.ending == .timedOut ? "none came" : "the server closed the connection"),
        repair: "another service answers there, or one that is stuck: look into its log")
    }
    let streams = settings.maxConcurrentStreams.map(String.init) ?? "unlimited"
    let size = settings.maxHeaderListSize.map(String.init) ?? "unlimited"
    let seen = "MAX_CONCURRENT_STREAMS \(streams), MAX_HEADER_LIST_SIZE \(size)"
    guard settings.areAsAPNs else {
      return .failed(
        .settings, "\(seen): APNs names a number of streams, and \(ServerSighting.Settings.headerListSizeOfAPNs)",
        repair: "another HTTP/2 server, or a proxy, answers there: connect to apns-mock itself")
    }
    return .passed(.settings, seen)
  }
}
