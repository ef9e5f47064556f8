internal import COpenSSL

/// One TLS connection over memory: cipher text in, plain text out, and the other way round. It does no I/O.
///
/// Not Sendable: one connection lives on one event loop.
public final class TLSConnection {
  /// Where the handshake stands.
  public enum Handshake {
    /// More bytes of the peer are needed.
    case waiting
    /// The client's greeting came and `stopsAfterGreeting` is set: it goes on with `proceed`. Nothing was said yet.
    case greeted
    /// Plain text can flow.
    case done
  }

  /// What a read gave.
  public enum ReadResult: Equatable {
    /// So many bytes of plain text.
    case bytes(Int)
    /// Nothing before more cipher text comes.
    case waiting
    /// The peer ended the TLS connection in order.
    case closed
  }

  // Freed in deinit, together with the BIO that `SSL_set_bio` made its own; what that refers to goes after it.
  let ssl: OpaquePointer
  private let cipherText = CipherText()
  /// Everything that came was read: nothing more can be, until more comes.
  private var isDry = false

  /// - Throws: `TLSError` if OpenSSL has no memory.
  public convenience init(server context: TLSContext) throws {
    try self.init(context)
    SSL_set_accept_state(ssl)
    // Unretained: OpenSSL calls back only inside calls of this object.
    SSL_set_ex_data(ssl, Self.ownerIndex, Unmanaged.passUnretained(self).toOpaque())
  }

  /// The client's side. `serverName` is sent as SNI and is the name, or the IP address, that the server's certificate must
  /// bear, unless the context takes any certificate.
  ///
  /// - Throws: `TLSError` if the name cannot be used.
  public convenience init(client context: TLSContext, serverName: String) throws {
    try self.init(context)
    SSL_set_connect_state(ssl)
    let parameters = SSL_get0_param(ssl)
    if X509_VERIFY_PARAM_set1_ip_asc(parameters, serverName) != 1 {
      guard apns_SSL_set_tlsext_host_name(ssl, serverName) == 1,
        X509_VERIFY_PARAM_set1_host(parameters, serverName, serverName.utf8.count) == 1
      else { throw TLSError("cannot use \(serverName) as a server name") }
    }
    if context.takesAnyCertificate {
      // The chain is judged alone then: `peerBears` tells of the name.
      X509_VERIFY_PARAM_set1_host(parameters, nil, 0)
      X509_VERIFY_PARAM_set1_ip(parameters, nil, 0)
    }
    ERR_clear_error()
  }

  private init(_ context: TLSContext) throws {
    guard let ssl = SSL_new(context.pointer) else { throw TLSError("cannot make a TLS connection") }
    guard let bio = cipherText.makeBIO() else {
      SSL_free(ssl)
      throw TLSError("cannot make a TLS connection")
    }
    SSL_set_bio(ssl, bio, bio)
    self.ssl = ssl
  }

  deinit { SSL_free(ssl) }

  /// Takes cipher text from the peer. `handshake` or `read` then work on it: during `work` on the bytes themselves, later
  /// on a copy of what that has left.
  public func receive<Result>(_ bytes: UnsafeRawBufferPointer, while work: () throws -> Result) rethrows -> Result {
    isDry = false
    return try cipherText.receive(bytes, while: work)
  }

  /// Takes cipher text from the peer, to be worked on later.
  public func receive(_ bytes: UnsafeRawBufferPointer) {
    receive(bytes) {}
  }

  /// Goes on with the handshake.
  ///
  /// - Throws: `TLSError` if it failed; an alert for the peer may then be waiting in the output.
  public func handshake() throws -> Handshake {
    forgetErrors()
    let result = SSL_do_handshake(ssl)
    if result == 1 { return .done }
    switch SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_READ: return .waiting
    case SSL_ERROR_WANT_X509_LOOKUP: return .greeted
    default: throw failure("TLS handshake failed")
    }
  }

  /// Fills `buffer` with plain text as far as what came allows.
  ///
  /// - Throws: `TLSError` if the peer broke the protocol or sent an alert.
  public func read(into buffer: UnsafeMutableRawBufferPointer) throws -> ReadResult {
    guard !isDry else { return .waiting }
    var filled = 0
    while filled < buffer.count {
      forgetErrors()
      let room = Int32(clamping: buffer.count - filled)
      let count = SSL_read(ssl, buffer.baseAddress.map { $0 + filled }, room)
      if count > 0 {
        filled += Int(count)
        // OpenSSL takes one record at a time. With all of it here and nothing behind it, to ask again would be in vain, and
        // take a seventh of the time of a small read.
        isDry = filled < buffer.count && cipherText.isRead
        if isDry { break }
        continue
      }
      let error = SSL_get_error(ssl, count)
      if filled > 0 { break }  // What stopped us is met again on the next call.
      switch error {
      case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .waiting
      case SSL_ERROR_ZERO_RETURN: return .closed
      default: throw failure("TLS connection failed")
      }
    }
    return .bytes(filled)
  }

  /// Encrypts plain text; the cipher text is then in the output.
  ///
  /// - Throws: `TLSError` if the connection is no longer able to.
  public func write(_ bytes: UnsafeRawBufferPointer) throws {
    var rest = bytes
    while rest.count > 0 {
      forgetErrors()
      let count = SSL_write(ssl, rest.baseAddress, Int32(clamping: rest.count))
      guard count > 0 else { throw failure("TLS connection failed") }
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(Int(count)))
    }
  }

  /// Puts a close_notify alert into the output.
  public func close() {
    ERR_clear_error()
    SSL_shutdown(ssl)
    ERR_clear_error()
  }

  /// Hands out the cipher text that waits to be sent, if there is any, and forgets it. The pointer is valid during the call,
  /// whatever else is written in it.
  public func takeOutput(_ body: (UnsafeRawBufferPointer) -> Void) {
    cipherText.takeOutput(body)
  }

  /// Gives back the memory of buffers that hold nothing now. They keep what the most at once took until then, first of all
  /// the handshake, and grow again with the next bytes.
  public func releaseBuffers() {
    cipherText.releaseBuffers()
  }

  // MARK: - Between the client's greeting and the answer

  /// Whether the handshake of a server stops when the client's greeting was read, so that somebody can decide what becomes
  /// of it by `serverName` and `offeredProtocols`. To be set before the handshake; false at first.
  public var stopsAfterGreeting = false {
    didSet {
      guard SSL_is_server(ssl) == 1 else { return }
      // Unretained: OpenSSL calls back only inside calls of this object.
      let owner = stopsAfterGreeting ? Unmanaged.passUnretained(self).toOpaque() : nil
      SSL_set_cert_cb(
        ssl,
        owner.map { _ in
          { _, owner in
            guard let owner else { return 1 }
            // 1 goes on, anything negative makes the handshake wait.
            return Unmanaged<TLSConnection>.fromOpaque(owner).takeUnretainedValue().mayProceed ? 1 : -1
          }
        }, owner)
    }
  }

  /// The names the client offered by ALPN, in its order, from `.greeted` on: the first 64 of them. Empty without ALPN, or if
  /// the handshake does not stop. Bytes that are not UTF-8 are replaced.
  public private(set) var offeredProtocols: [String] = []

  /// Goes on with a handshake that stopped at `.greeted`.
  ///
  /// - Parameter context: whose certificate and key are shown; nil for those of the connection's own context. Everything
  ///   else stays as that says: which client certificates are taken, versions, ALPN.
  /// - Returns: as `handshake`.
  /// - Throws: `TLSError`, also if the context has no certificate.
  @discardableResult
  public func proceed(with context: TLSContext? = nil) throws -> Handshake {
    if let context { try show(context) }
    mayProceed = true
    return try handshake()
  }

  private func show(_ context: TLSContext) throws {
    ERR_clear_error()
    guard let certificate = SSL_CTX_get0_certificate(context.pointer) else {
      throw TLSError("the other context has no certificate to show")
    }
    // All of them: a certificate of another kind (RSA) would stay beside the new one and might be taken.
    SSL_certs_clear(ssl)
    let key = SSL_CTX_get0_privatekey(context.pointer)
    guard SSL_use_cert_and_key(ssl, certificate, key, apns_SSL_CTX_get0_chain_certs(context.pointer), 1) == 1 else {
      throw TLSError("cannot show another certificate")
    }
  }

  private var mayProceed = false
  /// OpenSSL's place for an application's own pointer (SSL_set_app_data).
  private static let ownerIndex: Int32 = 0
  /// ALPN among the extensions (RFC 7301 section 3.1).
  private static let protocolNames: UInt32 = 16

  /// A client's greeting was read by OpenSSL and is looked at before it is worked on.
  static func greetingCame(_ ssl: OpaquePointer?) {
    guard let connection = owner(of: ssl), connection.stopsAfterGreeting else { return }
    var data: UnsafePointer<UInt8>?
    var count = 0
    guard SSL_client_hello_get0_ext(ssl, protocolNames, &data, &count) == 1, count > 2 else { return }
    // Two bytes of length, which OpenSSL checks later, then the names.
    let names = ProtocolNames(UnsafeBufferPointer(start: data, count: count).dropFirst(2))
    connection.offeredProtocols = names.prefix(64).map { String(decoding: $0, as: UTF8.self) }
  }

  private static func owner(of ssl: OpaquePointer?) -> TLSConnection? {
    SSL_get_ex_data(ssl, ownerIndex).map { Unmanaged<TLSConnection>.fromOpaque($0).takeUnretainedValue() }
  }

  // MARK: - Key updates

  /// How many handshake messages the client of a server sent after the handshake. In TLS 1.3 these are `KeyUpdate` messages
  /// (RFC 8446 section 4.6.3); TLS 1.2 has none, as renegotiation is off.
  public private(set) var keyUpdates = 0

  /// Counts a handshake message that OpenSSL has read.
  static func handshakeMessageCame(_ ssl: OpaquePointer?) {
    if SSL_get_state(ssl) == TLS_ST_SR_KEY_UPDATE { owner(of: ssl)?.keyUpdates += 1 }
  }

  // MARK: - Facts about the handshake

  /// The protocol as OpenSSL names it: `TLSv1.3` or `TLSv1.2`.
  public var protocolVersion: String { String(cString: SSL_get_version(ssl)) }

  /// The server name the client asked for, if it did.
  public var serverName: String? {
    SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
  }

  /// Whether `h2` was agreed on by ALPN.
  public var negotiatedHTTP2: Bool { negotiatedProtocol == "h2" }

  /// What was agreed on by ALPN, if anything was.
  public var negotiatedProtocol: String? {
    var name: UnsafePointer<UInt8>?
    var count: UInt32 = 0
    SSL_get0_alpn_selected(ssl, &name, &count)
    return name.map { String(decoding: UnsafeBufferPointer(start: $0, count: Int(count)), as: UTF8.self) }
  }

  /// The certificate the peer showed, in DER, if it has one. It proved to have it once the handshake is done.
  public var peerCertificate: [UInt8]? {
    guard let certificate = SSL_get1_peer_certificate(ssl) else { return nil }
    defer { X509_free(certificate) }
    let count = i2d_X509(certificate, nil)
    guard count > 0 else { return nil }
    return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, filled in
      var position = buffer.baseAddress
      filled = max(0, Int(i2d_X509(certificate, &position)))
    }
  }

  /// Whether the certificate the peer showed bears a name, or an IP address, among its alternative names.
  public func peerBears(_ name: String) -> Bool {
    guard let certificate = SSL_get1_peer_certificate(ssl) else { return false }
    defer {
      X509_free(certificate)
      ERR_clear_error()
    }
    if X509_check_ip_asc(certificate, name, 0) == 1 { return true }
    // Today's clients do not look at the subject's common name.
    return X509_check_host(certificate, name, name.utf8.count, UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT), nil) == 1
  }

  /// What is wrong with the certificates the peer showed; nil if nothing was found, or none came.
  public var peerFault: CertificateFault? {
    let code = SSL_get_verify_result(ssl)
    return code == Int(X509_V_OK) ? nil : CertificateFault(code: Int32(truncatingIfNeeded: code))
  }

  /// Empties the thread's queue of errors: what others left there OpenSSL would take for the outcome of its own work.
  private func forgetErrors() {
    // To look costs a quarter of emptying, and the queue is empty as a rule.
    if ERR_peek_error() != 0 { ERR_clear_error() }
  }

  private func failure(_ what: String) -> TLSError {
    TLSError(peerFault.map { "\(what) (the peer's certificate: \($0.text))" } ?? what)
  }
}
