internal import COpenSSL

/// A certificate that a server shows, and the key that goes with it.
public struct ServerIdentity: Sendable {
  /// The certificate first, then those above it. At least one.
  public let chain: [X509Certificate]
  /// The first certificate's private key.
  public let key: ES256PrivateKey

  /// An identity from parts.
  public init(chain: [X509Certificate], key: ES256PrivateKey) {
    self.chain = chain
    self.key = key
  }
}

/// What all connections of one side share: certificate, key, trusted authorities and options. Immutable once made.
public final class TLSContext: Sendable {
  /// The ALPN name of HTTP/2.
  static let alpn: [UInt8] = [2, UInt8(ascii: "h"), UInt8(ascii: "2")]

  // An SSL_CTX is reference counted and safe to use from many threads once it is set up, which is done when `init`
  // returns; freed in deinit, while each SSL made from it holds a reference of its own.
  nonisolated(unsafe) let pointer: OpaquePointer
  /// Whether a connection goes on with a peer that is not trusted.
  let takesAnyCertificate: Bool

  /// The server's side, as APNs does it (APNS.md section 1.2): TLS 1.2 and 1.3, ALPN `h2` and nothing else, a client
  /// certificate always asked for and never demanded.
  ///
  /// - Parameters:
  ///   - certificateChain: path of a PEM file, the leaf first.
  ///   - privateKey: path of a PEM file, the leaf's key.
  ///   - clientAuthorities: paths of PEM files with the CAs that client certificates may come from. Their names are not
  ///     sent, so that a client shows whatever certificate it has and a foreign one is answered with a TLS alert.
  /// - Throws: `TLSError` that names the file.
  public init(serverCertificateChain certificateChain: String, privateKey: String, clientAuthorities: [String]) throws {
    takesAnyCertificate = false
    pointer = try Self.make(TLS_server_method())
    guard SSL_CTX_use_certificate_chain_file(pointer, certificateChain) == 1 else {
      throw TLSError("cannot use the certificate chain in \(certificateChain)")
    }
    guard SSL_CTX_use_PrivateKey_file(pointer, privateKey, SSL_FILETYPE_PEM) == 1 else {
      throw TLSError("cannot use the private key in \(privateKey) with the certificate in \(certificateChain)")
    }
    try setUpServer(clientAuthorities: clientAuthorities)
  }

  /// The server's side with a certificate that is in no file: as above, or only to be shown by
  /// `TLSConnection.proceed(with:)`, for which `clientAuthorities` do not matter.
  ///
  /// - Throws: `TLSError` if certificate and key do not belong together, or for a file.
  public init(server identity: ServerIdentity, clientAuthorities: [String] = []) throws {
    takesAnyCertificate = false
    pointer = try Self.make(TLS_server_method())
    guard let leaf = identity.chain.first, let others = OPENSSL_sk_new_null() else {
      throw TLSError("a server cannot do without a certificate")
    }
    // Frees the stack only: the context takes references of its own to the certificates in it.
    defer { OPENSSL_sk_free(others) }
    for certificate in identity.chain.dropFirst() { OPENSSL_sk_push(others, UnsafeRawPointer(certificate.pointer)) }
    guard SSL_CTX_use_cert_and_key(pointer, leaf.pointer, identity.key.key.pointer, others, 1) == 1 else {
      throw TLSError("cannot use the certificate \(leaf.subject) with this key")
    }
    try setUpServer(clientAuthorities: clientAuthorities)
  }

  /// What every server's side has but its certificate.
  private func setUpServer(clientAuthorities: [String]) throws {
    for path in clientAuthorities where SSL_CTX_load_verify_locations(pointer, path, nil) != 1 {
      throw TLSError("cannot read certificate authorities from \(path)")
    }
    SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
    // A resumed session would slip past the client certificate, and with certificates asked for but no session id
    // context OpenSSL aborts each one: every handshake is a full one.
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
        // A client that offers something else only gets a handshake without ALPN and then HTTP/2, as at APNs.
        return SSL_TLSEXT_ERR_NOACK
      }, nil)
    SSL_CTX_set_client_hello_cb(
      pointer,
      { ssl, _, _ in
        TLSConnection.greetingCame(ssl)
        return SSL_CLIENT_HELLO_SUCCESS
      }, nil)
    SSL_CTX_set_info_callback(pointer) { ssl, event, _ in
      if event == SSL_CB_ACCEPT_LOOP { TLSConnection.handshakeMessageCame(ssl) }
    }
  }

  /// A client's side that trusts `authorities` (paths of PEM files) and offers `h2`.
  ///
  /// - Parameters:
  ///   - certificate: paths of a client certificate chain and its key, for a provider that uses one.
  ///   - takesAnyCertificate: goes on with any server, only to look at it: `TLSConnection.peerFault` and `peerBears` then
  ///     tell whether it is to be trusted. Nothing secret may be said before.
  /// - Throws: `TLSError` that names the file.
  public init(
    clientTrusting authorities: [String], certificate: (chain: String, key: String)? = nil,
    takesAnyCertificate: Bool = false
  ) throws {
    self.takesAnyCertificate = takesAnyCertificate
    pointer = try Self.make(TLS_client_method())
    for path in authorities where SSL_CTX_load_verify_locations(pointer, path, nil) != 1 {
      throw TLSError("cannot read certificate authorities from \(path)")
    }
    if let certificate {
      guard SSL_CTX_use_certificate_chain_file(pointer, certificate.chain) == 1 else {
        throw TLSError("cannot use the certificate chain in \(certificate.chain)")
      }
      guard SSL_CTX_use_PrivateKey_file(pointer, certificate.key, SSL_FILETYPE_PEM) == 1 else {
        throw TLSError("cannot use the private key in \(certificate.key) with the certificate in \(certificate.chain)")
      }
    }
    SSL_CTX_set_verify(pointer, takesAnyCertificate ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nil)
    SSL_CTX_set_alpn_protos(pointer, Self.alpn, UInt32(Self.alpn.count))
  }

  deinit { SSL_CTX_free(pointer) }

  private static func make(_ method: OpaquePointer?) throws -> OpaquePointer {
    ERR_clear_error()
    guard let context = SSL_CTX_new(method) else { throw TLSError("cannot make a TLS context") }
    _ = apns_SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION)
    _ = apns_SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION)
    SSL_CTX_set_options(context, APNS_SSL_OP_NO_COMPRESSION | APNS_SSL_OP_IGNORE_UNEXPECTED_EOF)
    // An idle connection keeps no record buffers.
    apns_SSL_CTX_release_buffers(context)
    return context
  }
}
