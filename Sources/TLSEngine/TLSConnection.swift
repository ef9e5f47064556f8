internal import CAPNSMockOpenSSL

/// One TLS connection in memory: decrypts received ciphertext and encrypts plaintext to send. It performs no I/O.
///
/// Not Sendable: a connection is confined to one event loop.
package final class TLSConnection {
  /// The state of the handshake.
  package enum Handshake {
    /// More bytes from the peer are needed.
    case waiting
    /// The ClientHello was received and `stopsAfterClientHello` is set: `proceed` continues. Nothing was sent yet.
    case clientHelloReceived
    /// The handshake is complete.
    case done
  }

  /// The result of a read.
  package enum ReadResult: Equatable {
    /// The number of plaintext bytes that were read.
    case bytes(Int)
    /// More ciphertext is needed.
    case waiting
    /// The peer closed the TLS connection with close_notify.
    case closed
  }

  // Freed in deinit together with the BIO, which `SSL_set_bio` transferred to it. `cipherText`, to which the BIO
  // refers, is released afterwards.
  let ssl: OpaquePointer
  private let cipherText = CiphertextBuffers()
  /// Whether all received bytes were read, so that another read is useless until more arrive.
  private var isInputDrained = false

  /// Creates the server side of a connection.
  ///
  /// - Throws: `TLSError` if OpenSSL cannot allocate memory.
  package convenience init(server context: TLSContext) throws {
    try self.init(context)
    SSL_set_accept_state(ssl)
    // Unretained: OpenSSL calls back only inside calls of this object.
    SSL_set_ex_data(ssl, Self.ownerIndex, Unmanaged.passUnretained(self).toOpaque())
  }

  /// Creates the client side of a connection. `serverName` is sent as SNI; the server's certificate must contain
  /// this name or IP address, unless the context accepts any certificate.
  ///
  /// - Throws: `TLSError` if the name cannot be used.
  package convenience init(client context: TLSContext, serverName: String) throws {
    try self.init(context)
    SSL_set_connect_state(ssl)
    let parameters = SSL_get0_param(ssl)
    if X509_VERIFY_PARAM_set1_ip_asc(parameters, serverName) != 1 {
      guard apns_SSL_set_tlsext_host_name(ssl, serverName) == 1,
        X509_VERIFY_PARAM_set1_host(parameters, serverName, serverName.utf8.count) == 1
      else { throw TLSError("cannot use \(serverName) as a server name") }
    }
    if context.acceptsAnyCertificate {
      // Only the chain is verified then; `peerCertificateContains` checks the name.
      X509_VERIFY_PARAM_set1_host(parameters, nil, 0)
      X509_VERIFY_PARAM_set1_ip(parameters, nil, 0)
    }
    ERR_clear_error()
  }

  private init(_ context: TLSContext) throws {
    guard let ssl = SSL_new(context.pointer) else { throw TLSError("cannot create a TLS connection") }
    guard let bio = cipherText.makeBIO() else {
      SSL_free(ssl)
      throw TLSError("cannot create a TLS connection")
    }
    SSL_set_bio(ssl, bio, bio)
    self.ssl = ssl
  }

  deinit { SSL_free(ssl) }

  /// Receives ciphertext from the peer for `handshake` or `read` to process: from `bytes` itself during `work`, and
  /// afterwards from a copy of the rest.
  package func receive<Result>(_ bytes: UnsafeRawBufferPointer, while work: () throws -> Result) rethrows -> Result {
    isInputDrained = false
    return try cipherText.receive(bytes, while: work)
  }

  /// Receives ciphertext from the peer and copies it for later processing.
  package func receive(_ bytes: UnsafeRawBufferPointer) {
    receive(bytes) {}
  }

  /// Continues the handshake.
  ///
  /// - Throws: `TLSError` if it failed; the output may then contain an alert for the peer.
  package func handshake() throws -> Handshake {
    clearErrors()
    let result = SSL_do_handshake(ssl)
    if result == 1 { return .done }
    switch SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_READ: return .waiting
    case SSL_ERROR_WANT_X509_LOOKUP: return .clientHelloReceived
    default: throw failure("TLS handshake failed")
    }
  }

  /// Reads as much plaintext into `buffer` as is available and fits.
  ///
  /// - Throws: `TLSError` if the peer violated the protocol or sent an alert.
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws -> ReadResult {
    guard !isInputDrained else { return .waiting }
    var filled = 0
    while filled < buffer.count {
      clearErrors()
      let count = SSL_read(
        ssl, buffer.baseAddress.map { $0 + filled }, Int32(clamping: buffer.count - filled))
      if count > 0 {
        filled += Int(count)
        // OpenSSL reads one record per call. Once all received bytes are read, another call would return nothing.
        // Measured: such a call took 14 % of the time of a small read.
        isInputDrained = filled < buffer.count && cipherText.isRead
        if isInputDrained { break }
        continue
      }
      let error = SSL_get_error(ssl, count)
      if filled > 0 { break }  // The next call reports the error.
      switch error {
      case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .waiting
      case SSL_ERROR_ZERO_RETURN: return .closed
      default: throw failure("TLS connection failed")
      }
    }
    return .bytes(filled)
  }

  /// Encrypts plaintext into the output.
  ///
  /// - Throws: `TLSError` if the connection can no longer send.
  package func write(_ bytes: UnsafeRawBufferPointer) throws {
    var rest = bytes
    while rest.count > 0 {
      clearErrors()
      let count = SSL_write(ssl, rest.baseAddress, Int32(clamping: rest.count))
      guard count > 0 else { throw failure("TLS connection failed") }
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(Int(count)))
    }
  }

  /// Appends a close_notify alert to the output.
  package func close() {
    ERR_clear_error()
    SSL_shutdown(ssl)
    ERR_clear_error()
  }

  /// Passes the pending output, if any, to `body` and clears it. The pointer is valid during the call, even if more
  /// output is written.
  package func takeOutput(_ body: (UnsafeRawBufferPointer) -> Void) {
    cipherText.takeOutput(body)
  }

  /// Releases the memory of empty buffers. Buffers keep their maximum size, which the handshake determines at
  /// first, and grow again when needed.
  package func releaseBuffers() {
    cipherText.releaseBuffers()
  }

  // MARK: - Between ClientHello and ServerHello

  /// Whether a server's handshake stops after the ClientHello, so that the caller can inspect `serverName` and
  /// `offeredProtocols` before it continues. Must be set before the handshake; false by default.
  package var stopsAfterClientHello = false {
    didSet {
      guard SSL_is_server(ssl) == 1 else { return }
      // Unretained: OpenSSL calls back only inside calls of this object.
      let owner = stopsAfterClientHello ? Unmanaged.passUnretained(self).toOpaque() : nil
      SSL_set_cert_cb(
        ssl,
        owner.map { _ in
          { _, owner in
            guard let owner else { return 1 }
            // 1 continues the handshake, a negative value suspends it.
            return Unmanaged<TLSConnection>.fromOpaque(owner).takeUnretainedValue().mayProceed ? 1 : -1
          }
        }, owner)
    }
  }

  /// The first 64 protocol names the client offered with ALPN, in its order, available from `.clientHelloReceived` on.
  /// Empty without ALPN, or if the handshake does not stop. Invalid UTF-8 is replaced.
  package private(set) var offeredProtocols: [String] = []

  /// Continues a handshake that stopped at `.clientHelloReceived`.
  ///
  /// - Parameter context: The context whose certificate and key are used; nil for the connection's own. Client
  ///   certificate verification, protocol versions and ALPN are not affected.
  /// - Returns: As `handshake`.
  /// - Throws: `TLSError` if the handshake fails or the context has no certificate.
  @discardableResult
  package func proceed(with context: TLSContext? = nil) throws -> Handshake {
    if let context { try useCertificate(of: context) }
    mayProceed = true
    return try handshake()
  }

  private func useCertificate(of context: TLSContext) throws {
    ERR_clear_error()
    guard let certificate = SSL_CTX_get0_certificate(context.pointer) else {
      throw TLSError("the other context has no certificate")
    }
    // Remove all certificates: one of another key type (RSA) would otherwise remain and might be selected.
    SSL_certs_clear(ssl)
    let key = SSL_CTX_get0_privatekey(context.pointer)
    guard SSL_use_cert_and_key(ssl, certificate, key, apns_SSL_CTX_get0_chain_certs(context.pointer), 1) == 1 else {
      throw TLSError("cannot use the other certificate")
    }
  }

  private var mayProceed = false
  /// The ex_data index that OpenSSL reserves for the application (SSL_set_app_data).
  private static let ownerIndex: Int32 = 0
  /// The ALPN extension type (RFC 7301 section 3.1).
  private static let protocolNames: UInt32 = 16

  /// Called when OpenSSL has parsed a ClientHello, before it is processed.
  static func didReceiveClientHello(_ ssl: OpaquePointer?) {
    guard let connection = owner(of: ssl), connection.stopsAfterClientHello else { return }
    var data: UnsafePointer<UInt8>?
    var count = 0
    guard SSL_client_hello_get0_ext(ssl, protocolNames, &data, &count) == 1, count > 2 else { return }
    // Two bytes of length, which OpenSSL validates later, then the names.
    let names = ProtocolNames(UnsafeBufferPointer(start: data, count: count).dropFirst(2))
    connection.offeredProtocols = names.prefix(64).map { String(decoding: $0, as: UTF8.self) }
  }

  private static func owner(of ssl: OpaquePointer?) -> TLSConnection? {
    SSL_get_ex_data(ssl, ownerIndex).map { Unmanaged<TLSConnection>.fromOpaque($0).takeUnretainedValue() }
  }

  // MARK: - Key updates

  /// The number of handshake messages that a server received after the handshake. In TLS 1.3 these are `KeyUpdate`
  /// messages (RFC 8446 section 4.6.3); TLS 1.2 has none, because renegotiation is disabled.
  package private(set) var keyUpdates = 0

  /// Counts a handshake message that OpenSSL has read.
  static func didReceiveHandshakeMessage(_ ssl: OpaquePointer?) {
    if SSL_get_state(ssl) == TLS_ST_SR_KEY_UPDATE { owner(of: ssl)?.keyUpdates += 1 }
  }

  // MARK: - Results of the handshake

  /// The protocol version as named by OpenSSL: `TLSv1.3` or `TLSv1.2`.
  package var protocolVersion: String { String(cString: SSL_get_version(ssl)) }

  /// The server name in the client's SNI, if any.
  package var serverName: String? {
    SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
  }

  /// Whether ALPN selected `h2`.
  package var negotiatedHTTP2: Bool { negotiatedProtocol == "h2" }

  /// The protocol selected by ALPN, if any.
  package var negotiatedProtocol: String? {
    var name: UnsafePointer<UInt8>?
    var count: UInt32 = 0
    SSL_get0_alpn_selected(ssl, &name, &count)
    return name.map { String(decoding: UnsafeBufferPointer(start: $0, count: Int(count)), as: UTF8.self) }
  }

  /// The peer's certificate in DER, if it sent one. Once the handshake is done, the peer has proved possession of
  /// the key.
  package var peerCertificate: [UInt8]? {
    guard let certificate = SSL_get1_peer_certificate(ssl) else { return nil }
    defer { X509_free(certificate) }
    let count = i2d_X509(certificate, nil)
    guard count > 0 else { return nil }
    return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, filled in
      var position = buffer.baseAddress
      filled = max(0, Int(i2d_X509(certificate, &position)))
    }
  }

  /// Whether the peer's certificate contains a host name or IP address among its subject alternative names.
  package func peerCertificateContains(_ name: String) -> Bool {
    guard let certificate = SSL_get1_peer_certificate(ssl) else { return false }
    defer {
      X509_free(certificate)
      ERR_clear_error()
    }
    if X509_check_ip_asc(certificate, name, 0) == 1 { return true }
    // Current clients ignore the subject's common name.
    return X509_check_host(certificate, name, name.utf8.count, UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT), nil) == 1
  }

  /// The first error in the peer's certificate chain; nil if there is none, or the peer sent no certificate.
  package var peerCertificateFault: CertificateFault? {
    let code = SSL_get_verify_result(ssl)
    return code == Int(X509_V_OK) ? nil : CertificateFault(code: Int32(truncatingIfNeeded: code))
  }

  /// Clears the thread's OpenSSL error queue: SSL_get_error would report errors that other calls left there.
  private func clearErrors() {
    // Peeking costs a quarter of clearing, and the queue is usually empty.
    if ERR_peek_error() != 0 { ERR_clear_error() }
  }

  private func failure(_ what: String) -> TLSError {
    TLSError(peerCertificateFault.map { "\(what) (the peer's certificate: \($0.text))" } ?? what)
  }
}
