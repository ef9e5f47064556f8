internal import CAPNSMockOpenSSL

/// The ciphertext buffers of one connection, between OpenSSL and the socket's owner: received bytes to be read and
/// written bytes to be sent.
///
/// Replaces OpenSSL's memory BIO (`BIO_s_mem`), which clears memory before it copies, and spends about a hundred
/// instructions on each of the dozen control requests per record, most of which concern only sockets.
final class CiphertextBuffers {
  // Accessed only inside calls of one connection, on its event loop: OpenSSL calls back while it is called.
  private var incoming = ByteQueue()
  /// The unread part of the bytes received after those in `incoming`, in the caller's memory. Empty except during
  /// `receive`.
  private var unread = UnsafeRawBufferPointer(start: nil, count: 0)
  private var outgoing = ByteQueue()

  /// Whether all received bytes were read.
  var isRead: Bool { unread.isEmpty && incoming.isEmpty }

  /// Makes `bytes` readable without copying during `work`, and then copies the unread rest.
  func receive<Result>(_ bytes: UnsafeRawBufferPointer, while work: () throws -> Result) rethrows -> Result {
    copyUnread()
    unread = bytes
    defer { copyUnread() }
    return try work()
  }

  private func copyUnread() {
    guard !unread.isEmpty else { return }
    incoming.append(unread)
    unread = UnsafeRawBufferPointer(start: nil, count: 0)
  }

  /// Passes the pending output, if any, to `body` and clears it. The pointer is valid during the call, even if more
  /// output is written.
  func takeOutput(_ body: (UnsafeRawBufferPointer) -> Void) {
    guard !outgoing.isEmpty else { return }
    var sending = ByteQueue()
    swap(&sending, &outgoing)
    body(sending.bytes)
    guard outgoing.isEmpty else { return }
    sending.removeAll()
    swap(&sending, &outgoing)
  }

  /// Releases the memory of empty buffers.
  func releaseBuffers() {
    if incoming.isEmpty { incoming = ByteQueue() }
    if outgoing.isEmpty { outgoing = ByteQueue() }
  }

  // MARK: - BIO

  /// - Returns: The number of bytes read.
  private func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard incoming.isEmpty else { return incoming.move(to: buffer) }
    let count = min(buffer.count, unread.count)
    guard count > 0, let source = unread.baseAddress else { return 0 }
    buffer.baseAddress?.copyMemory(from: source, byteCount: count)
    unread = UnsafeRawBufferPointer(rebasing: unread[count...])
    return count
  }

  /// Creates a BIO that reads from and writes to this object, unretained: the object must outlive the BIO.
  ///
  /// - Returns: nil if OpenSSL cannot allocate memory.
  func makeBIO() -> OpaquePointer? {
    guard let method = Self.method, let bio = BIO_new(method) else { return nil }
    BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
    BIO_set_init(bio, 1)
    return bio
  }

  /// Created once and never freed; OpenSSL only reads it.
  nonisolated(unsafe) private static let method: OpaquePointer? = {
    let type = BIO_get_new_index()
    guard type != -1, let method = BIO_meth_new(type | BIO_TYPE_SOURCE_SINK, "cipher text") else { return nil }
    BIO_meth_set_read_ex(method) { bio, bytes, size, count in
      guard let text = CiphertextBuffers.of(bio), let count else { return 0 }
      BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
      count.pointee = text.read(into: UnsafeMutableRawBufferPointer(start: bytes, count: size))
      if count.pointee > 0 { return 1 }
      // Retry: this is not the end of the stream.
      BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
      return 0
    }
    BIO_meth_set_write_ex(method) { bio, bytes, size, count in
      guard let text = CiphertextBuffers.of(bio), let count else { return 0 }
      text.outgoing.append(UnsafeRawBufferPointer(start: bytes, count: size))
      count.pointee = size
      return 1
    }
    // Written bytes need no flushing; other control requests are not supported.
    BIO_meth_set_ctrl(method) { _, question, _, _ in question == BIO_CTRL_FLUSH ? 1 : 0 }
    return method
  }()

  private static func of(_ bio: OpaquePointer?) -> CiphertextBuffers? {
    BIO_get_data(bio).map { Unmanaged<CiphertextBuffers>.fromOpaque($0).takeUnretainedValue() }
  }
}
