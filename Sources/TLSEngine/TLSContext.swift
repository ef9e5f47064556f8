internal import CAPNSMockOpenSSL

/// A server certificate chain with its private key.
package struct ServerIdentity: Sendable {
  /// The server's certificate followed by its issuers. At least one certificate.
  package let chain: [X509Certificate]
  /// The first certificate's private key.
  package let key: ES256PrivateKey

  /// Creates an identity.
  package init(chain: [X509Certificate], key: ES256PrivateKey) {
    self.chain = chain
    self.key = key
  }
}

/// The configuration shared by the connections of one side: certificate, key, trusted authorities and options.
/// Immutable.
package final class TLSContext: Sendable {
  /// The ALPN protocol list with the name of HTTP/2.
  static let alpn: [UInt8] = [2, UInt8(ascii: "h"), UInt8(ascii: "2")]

  // An SSL_CTX is reference counted and thread-safe after its setup, which `init` completes. Freed in deinit; each
  // SSL created from it holds a reference.
  nonisolated(unsafe) let pointer: OpaquePointer
  /// Whether connections accept a peer that is not trusted.
  let acceptsAnyCertificate: Bool

  /// Creates a server context with the properties of APNs (Protocol.md, section 1.2): TLS 1.2 and 1.3, only `h2` in
  /// ALPN, client certificates always requested and never required.
  ///
  /// - Parameters:
  ///   - certificateChain: The path of a PEM file, leaf certificate first.
  ///   - privateKey: The path of a PEM file with the leaf's key.
  ///   - clientAuthorities: The paths of PEM files with the CAs that may issue client certificates. Their names are
  ///     not sent, so that a client sends any certificate it has, and one of another CA is rejected with a TLS alert.
  /// - Throws: `TLSError` that names the file.
  package init(serverCertificateChain certificateChain: String, privateKey: String, clientAuthorities: [String]) throws
  {
    acceptsAnyCertificate = false
    pointer = try Self.make(TLS_server_method())
    try use(certificateChain: certificateChain, privateKey: privateKey)
    try setUpServer(clientAuthorities: clientAuthorities)
  }

  /// Creates a server context with a certificate in memory, with the same properties as above. For a context used
  /// only in `TLSConnection.proceed(with:)`, `clientAuthorities` is not needed.
  ///
  /// - Throws: `TLSError` if certificate and key do not match, or a file cannot be read.
  package init(server identity: ServerIdentity, clientAuthorities: [String] = []) throws {
    acceptsAnyCertificate = false
    pointer = try Self.make(TLS_server_method())
    guard let leaf = identity.chain.first, let others = OPENSSL_sk_new_null() else {
      throw TLSError("a server needs a certificate")
    }
    // Frees only the stack: the context retains the certificates in it.
    defer { OPENSSL_sk_free(others) }
    for certificate in identity.chain.dropFirst() { OPENSSL_sk_push(others, UnsafeRawPointer(certificate.pointer)) }
    guard SSL_CTX_use_cert_and_key(pointer, leaf.pointer, identity.key.key.pointer, others, 1) == 1 else {
      throw TLSError("cannot use the certificate \(leaf.subject) with this key")
    }
    try setUpServer(clientAuthorities: clientAuthorities)
  }

  /// Configures everything but the certificate.
  private func setUpServer(clientAuthorities: [String]) throws {
    for path in clientAuthorities where SSL_CTX_load_verify_locations(pointer, path, nil) != 1 {
      throw TLSError("cannot read certificate authorities from \(path)\(PEMText.binaryProblem(ofFile: path))")
    }
    SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
    // Every handshake is a full one: a resumed session would skip the client certificate, and OpenSSL rejects
    // resumption with requested client certificates if there is no session id context.
    SSL_CTX_set_options(pointer, APNS_SSL_OP_NO_TICKET | APNS_SSL_OP_NO_RENEGOTIATION)
    SSL_CTX_set_num_tickets(pointer, 0)
    apns_SSL_CTX_no_session_cache(pointer)
    SSL_CTX_set_alpn_select_cb(
      pointer,
      { _, selected, selectedCount, offered, offeredCount, _ in
        guard let selected, let selectedCount, let offered else { return SSL_TLSEXT_ERR_NOACK }
        let names = ProtocolNames(UnsafeBufferPointer(start: offered, count: Int(offeredCount))[...])
        for name in names where name.elementsEqual(TLSContext.alpn.dropFirst()) {
          // Points into the client's offer, as OpenSSL allows.
          selected.pointee = offered + name.startIndex
          selectedCount.pointee = UInt8(name.count)
          return SSL_TLSEXT_ERR_OK
        }
        // A client that offers only other protocols gets a handshake without ALPN and then HTTP/2, as with APNs.
        return SSL_TLSEXT_ERR_NOACK
      }, nil)
    SSL_CTX_set_client_hello_cb(
      pointer,
      { ssl, _, _ in
        TLSConnection.didReceiveClientHello(ssl)
        return SSL_CLIENT_HELLO_SUCCESS
      }, nil)
    SSL_CTX_set_info_callback(pointer) { ssl, event, _ in
      if event == SSL_CB_ACCEPT_LOOP { TLSConnection.didReceiveHandshakeMessage(ssl) }
    }
  }

  /// Creates a client context that trusts `authorities` (paths of PEM files).
  ///
  /// - Parameters:
  ///   - certificate: The paths of a client certificate chain and its key, if the provider uses one.
  ///   - acceptsAnyCertificate: Accepts any server, for inspection only: `TLSConnection.peerCertificateFault` and
  ///     `peerCertificateContains` then report whether it is trusted. Send nothing confidential before that.
  ///   - trustsSystem: Whether the CAs that the system trusts are trusted as well.
  ///   - offersHTTP2: Whether `h2` is offered by ALPN; otherwise `http/1.1` is.
  /// - Throws: `TLSError` that names the file.
  package init(
    clientTrusting authorities: [String], certificate: (chain: String, key: String)? = nil,
    acceptsAnyCertificate: Bool = false, trustsSystem: Bool = false, offersHTTP2: Bool = true
  ) throws {
    self.acceptsAnyCertificate = acceptsAnyCertificate
    pointer = try Self.make(TLS_client_method())
    if trustsSystem {
      // The variables SSL_CERT_FILE and SSL_CERT_DIR, or the folder that OpenSSL was built for.
      SSL_CTX_set_default_verify_paths(pointer)
      for path in Self.systemAuthorities where SSL_CTX_load_verify_locations(pointer, path, nil) == 1 { break }
      ERR_clear_error()
    }
    for path in authorities where SSL_CTX_load_verify_locations(pointer, path, nil) != 1 {
      throw TLSError("cannot read certificate authorities from \(path)\(PEMText.binaryProblem(ofFile: path))")
    }
    if let certificate { try use(certificateChain: certificate.chain, privateKey: certificate.key) }
    SSL_CTX_set_verify(pointer, acceptsAnyCertificate ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nil)
    let protocols = offersHTTP2 ? Self.alpn : [8] + Array("http/1.1".utf8)
    SSL_CTX_set_alpn_protos(pointer, protocols, UInt32(protocols.count))
  }

  deinit { SSL_CTX_free(pointer) }

  /// The files with the CAs that systems trust; a program that is linked statically has none of its own.
  private static let systemAuthorities = [
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
  ]

  /// Loads a certificate chain and the private key of its first certificate from PEM files.
  private func use(certificateChain: String, privateKey: String) throws {
    // OpenSSL would ask for a pass phrase on the terminal.
    SSL_CTX_set_default_passwd_cb(pointer, MemoryBIO.noPassphrase)
    guard SSL_CTX_use_certificate_chain_file(pointer, certificateChain) == 1 else {
      throw TLSError(
        "cannot use the certificate chain in \(certificateChain)\(PEMText.binaryProblem(ofFile: certificateChain))")
    }
    let isLoaded = SSL_CTX_use_PrivateKey_file(pointer, privateKey, SSL_FILETYPE_PEM) == 1
    // A key of another algorithm than the certificate's is loaded without an error, and the certificate is then not sent.
    let isMismatched =
      isLoaded
      ? SSL_CTX_check_private_key(pointer) != 1 : ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH
    if isMismatched {
      ERR_clear_error()
      throw TLSError(
        "the private key in \(privateKey) does not belong to the certificate in \(certificateChain), which has another public key"
      )
    }
    guard isLoaded else {
      throw TLSError(
        "cannot use the private key in \(privateKey) with the certificate in \(certificateChain)"
          + PEMText.binaryProblem(ofFile: privateKey))
    }
  }

  private static func make(_ method: OpaquePointer?) throws -> OpaquePointer {
    ERR_clear_error()
    guard let context = SSL_CTX_new(method) else { throw TLSError("cannot create a TLS context") }
    _ = apns_SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION)
    _ = apns_SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION)
    SSL_CTX_set_options(context, APNS_SSL_OP_NO_COMPRESSION | APNS_SSL_OP_IGNORE_UNEXPECTED_EOF)
    // Idle connections keep no record buffers.
    apns_SSL_CTX_release_buffers(context)
    return context
  }
}

/// The names in an ALPN offer (RFC 7301 section 3.1), each preceded by its length in one byte. Ends at the first
/// truncated name.
struct ProtocolNames: Sequence, IteratorProtocol {
  private var rest: Slice<UnsafeBufferPointer<UInt8>>

  init(_ offer: Slice<UnsafeBufferPointer<UInt8>>) { rest = offer }

  mutating func next() -> Slice<UnsafeBufferPointer<UInt8>>? {
    guard let length = rest.first, rest.count > Int(length) else { return nil }
    let name = rest.dropFirst().prefix(Int(length))
    rest = rest.dropFirst(Int(length) + 1)
    return name
  }
}
