internal import COpenSSL

/// Cipher text between OpenSSL and whoever has the socket: what came and is still to be read, what is written and still to
/// be sent.
///
/// OpenSSL's own stream over memory (`BIO_s_mem`) does the same. It writes zeros wherever it is about to copy to, and the
/// dozen questions that OpenSSL asks of a stream for each record, most of them about what only sockets have, take it a
/// hundred instructions each.
final class CipherText {
  // Touched only inside calls of one connection, on its event loop: OpenSSL calls back while it is called.
  @exclusivity(unchecked) private var incoming = ByteQueue()
  /// What came after that, as far as it was not read, where whoever brought it has it. Empty but during `receive`.
  @exclusivity(unchecked) private var lent = UnsafeRawBufferPointer(start: nil, count: 0)
  @exclusivity(unchecked) private var outgoing = ByteQueue()

  /// Whether everything that came was read.
  var isRead: Bool { lent.isEmpty && incoming.isEmpty }

  /// Lends what came for the time of `work`, and then keeps what that has not read.
  func receive<Result>(_ bytes: UnsafeRawBufferPointer, while work: () throws -> Result) rethrows -> Result {
    keepRest()
    lent = bytes
    defer { keepRest() }
    return try work()
  }

  private func keepRest() {
    guard !lent.isEmpty else { return }
    incoming.append(lent)
    lent = UnsafeRawBufferPointer(start: nil, count: 0)
  }

  /// Hands out what waits to be sent, if there is any, and forgets it. The pointer is valid during the call, whatever is
  /// written meanwhile.
  func takeOutput(_ body: (UnsafeRawBufferPointer) -> Void) {
    guard !outgoing.isEmpty else { return }
    var leaving = ByteQueue()
    swap(&leaving, &outgoing)
    body(leaving.bytes)
    guard outgoing.isEmpty else { return }
    leaving.removeAll()
    swap(&leaving, &outgoing)
  }

  /// Gives back the memory for the most that ever was here, where nothing is now.
  func releaseBuffers() {
    if incoming.isEmpty { incoming = ByteQueue() }
    if outgoing.isEmpty { outgoing = ByteQueue() }
  }

  // MARK: - OpenSSL's side

  /// - Returns: how many bytes there were for the room.
  private func read(into room: UnsafeMutableRawBufferPointer) -> Int {
    guard incoming.isEmpty else { return incoming.move(to: room) }
    let count = min(room.count, lent.count)
    guard count > 0, let source = lent.baseAddress else { return 0 }
    room.baseAddress?.copyMemory(from: source, byteCount: count)
    lent = UnsafeRawBufferPointer(rebasing: lent[count...])
    return count
  }

  /// A stream for OpenSSL that reads and writes here. It refers to this object unretained: whoever frees it keeps the object
  /// until then.
  ///
  /// - Returns: nil if OpenSSL has no memory.
  func makeBIO() -> OpaquePointer? {
    guard let method = Self.method, let bio = BIO_new(method) else { return nil }
    BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
    BIO_set_init(bio, 1)
    return bio
  }

  /// Made once and never freed; OpenSSL only reads it.
  nonisolated(unsafe) private static let method: OpaquePointer? = {
    let type = BIO_get_new_index()
    guard type != -1, let method = BIO_meth_new(type | BIO_TYPE_SOURCE_SINK, "cipher text") else { return nil }
    BIO_meth_set_read_ex(method) { bio, bytes, room, count in
      guard let text = CipherText.of(bio), let count else { return 0 }
      BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
      count.pointee = text.read(into: UnsafeMutableRawBufferPointer(start: bytes, count: room))
      if count.pointee > 0 { return 1 }
      // There is more to come: it is not the end.
      BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
      return 0
    }
    BIO_meth_set_write_ex(method) { bio, bytes, size, count in
      guard let text = CipherText.of(bio), let count else { return 0 }
      text.outgoing.append(UnsafeRawBufferPointer(start: bytes, count: size))
      count.pointee = size
      return 1
    }
    // What is written is where it belongs. Of everything else that is asked for there is none.
    BIO_meth_set_ctrl(method) { _, question, _, _ in question == BIO_CTRL_FLUSH ? 1 : 0 }
    return method
  }()

  private static func of(_ bio: OpaquePointer?) -> CipherText? {
    BIO_get_data(bio).map { Unmanaged<CipherText>.fromOpaque($0).takeUnretainedValue() }
  }
}
