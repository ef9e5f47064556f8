import MockAPNS
import APNSMockTLSEngine

// MARK: - Certificate

extension Diagnosis {
  /// Checks the certificate chain and validity period.
  func checkChain() -> Probe.Outcome {
    guard let certificate = connection.serverCertificate else {
      return .skipped("the handshake ended before the certificate")
    }
    guard let fault = connection.certificateFault else {
      let end = TimeArgument.text(certificate.notAfter)
      return constrainedAddresses ?? .passed("issued by \(certificate.issuer), valid until \(end)")
    }
    switch fault.kind {
    case .unknownAuthority: return unknownAuthority(of: certificate)
    case .expired, .notYetValid:
      let validity = "\(TimeArgument.text(certificate.notBefore)) to \(TimeArgument.text(certificate.notAfter))"
      let now = TimeArgument.text(ServerClock().now)
      return .failed(
        "\(fault.text): it is valid from \(validity), and this machine's clock shows \(now)",
        repair:
          "if the clock is correct, restart apns-mock serve, which renews its certificate and reports an expired CA; if "
          + "not, set the clock")
    case .nameOutsideAuthority:
      return .failed(
        "the CA's name constraints exclude a name of the certificate: \(fault.text)",
        repair: "create a CA for these names: apns-mock certs --new-ca --san NAME")
    case .otherName, .other:
      return .failed(
        fault.text, repair: "create new certificates: apns-mock certs --new-ca; clients must trust the new CA")
    }
  }

  /// The failure for a CA with IP address constraints, which clients built on BoringSSL reject; nil for other CAs.
  private var constrainedAddresses: Probe.Outcome? {
    let problem =
      "has IP addresses in its name constraints: clients built on BoringSSL (NIOSSL, curl_cffi, Chrome) reject it"
    if known?.authority?.constrainsAddresses == true {
      return .failed(
        "the server's CA \(problem)",
        repair:
          "restart apns-mock serve, which re-issues the CA with the same key; if ca-key.pem is missing, create a new CA: "
          + "apns-mock certs --new-ca")
    }
    guard let authority, let text = try? Files.text(of: authority),
      let trusted = try? X509Certificate.chain(pem: text), trusted.contains(where: \.constrainsAddresses)
    else { return nil }
    let current = known.map { "; the running server has a current one: curl http://\($0.admin)/ca.pem -o ca.pem" }
    return .failed(
      "\(authority) \(problem)",
      repair:
        "run apns-mock certs for its folder, which re-issues it with the same key; if ca-key.pem is missing, create a new "
        + "CA: apns-mock certs --new-ca\(current ?? "")")
  }

  private func unknownAuthority(of certificate: X509Certificate) -> Probe.Outcome {
    let trusted = authority.map { "which is not in \($0)" } ?? "and no trusted CA is specified"
    let seen = "issued by \(certificate.issuer), \(trusted)"
    if certificate.issuerOrganization?.hasPrefix("Apple") == true {
      return .failed(
        "\(seen): this is Apple's own server",
        repair: "map \(serverName) to the mock in the hosts file or by a container's alias")
    }
    if let known, known.authority.map(certificate.isIssued(by:)) == true {
      return .failed(
        seen, repair: "download the server's CA and trust it: curl http://\(known.admin)/ca.pem -o ca.pem; --ca ca.pem")
    }
    if let known, known.nextAuthority.map(certificate.isIssued(by:)) == true {
      return .failed(
        "\(seen): the server was switched to its next CA",
        repair: "trust it as well: curl http://\(known.admin)/ca-next.pem -o ca-next.pem; or go back: "
          + "apns-mock certs rotate --to current")
    }
    if certificate.issuerOrganization == CertificateAuthority.organization {
      return .failed(
        seen,
        repair: "trust ca.pem of that server's certificate folder (--ca FILE), or download it from its admin listener: "
          + "curl http://HOST:8197/ca.pem -o ca.pem")
    }
    return .failed(
      seen,
      repair:
        "another service or a proxy responds: connect directly to apns-mock, or trust that service's CA (--ca FILE)")
  }

  /// Checks that the certificate contains the server's name.
  func checkName() -> Probe.Outcome {
    guard let certificate = connection.serverCertificate else {
      return .skipped("the handshake ended before the certificate")
    }
    if connection.certificateMatchesName { return .passed("the certificate contains \(serverName)") }
    let names = certificate.names.map(\.description).joined(separator: ", ")
    return .failed(
      "the certificate contains \(names.isEmpty ? "no names" : names), not \(serverName)",
      repair: "start the server with --san \(serverName), which re-issues its certificate, or use one of its names "
        + "(--server-name)")
  }
}

// MARK: - HTTP/2

extension Diagnosis {
  /// Checks the negotiated protocol.
  func checkProtocol() -> Probe.Outcome {
    if connection.negotiatedProtocol == "h2" { return .passed("h2") }
    guard connection.tls != nil || connection.rejectsHTTP2 else { return .skipped("the handshake failed") }
    let selection = connection.negotiatedProtocol.map { "the server selected \($0)" }
    return .failed(
      connection.rejectsHTTP2 ? "the server rejected h2" : selection ?? "the server selected no protocol",
      repair: "enable HTTP/2 on the server; a proxy in front of apns-mock must forward TCP, or offer h2 by ALPN")
  }

  /// Compares the first SETTINGS with those of APNs (Protocol.md, section 9.1, observed).
  func checkSettings() -> Probe.Outcome {
    guard connection.negotiatedProtocol == "h2" else { return .skipped("no HTTP/2") }
    guard let settings = connection.settings else {
      // With TLS 1.3, a server rejects a client certificate only after the handshake.
      if credential?.certificateFiles != nil, let failure = connection.failure {
        return .skipped("the server ended the connection first: \(failure)")
      }
      return .failed(
        connection.failure
          ?? (connection.termination == .timedOut ? "none received" : "the server closed the connection"),
        repair: "another service responds, or the server is stuck: check its log")
    }
    let streams = settings.maxConcurrentStreams.map(String.init) ?? "unlimited"
    let size = settings.maxHeaderListSize.map(String.init) ?? "unlimited"
    let seen = "MAX_CONCURRENT_STREAMS \(streams), MAX_HEADER_LIST_SIZE \(size)"
    guard settings.areAsAPNs else {
      return .failed(
        "\(seen): APNs sends a limit of streams and MAX_HEADER_LIST_SIZE \(ProbeResult.Settings.headerListSizeOfAPNs)",
        repair: "another HTTP/2 server or a proxy responds: connect directly to apns-mock")
    }
    return .passed(seen)
  }
}
