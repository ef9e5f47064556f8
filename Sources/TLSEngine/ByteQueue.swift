internal import CAPNSMockOpenSSL

/// A queue of bytes that reuses its memory.
///
/// An array that is emptied and filled again for each record takes several times as long.
struct ByteQueue: ~Copyable {
  // Owned: freed in deinit, or when it is replaced by a larger one.
  private(set) var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private var start = 0
  private var end = 0

  deinit { memory.deallocate() }

  var isEmpty: Bool { start == end }

  /// The queued bytes, valid until the queue is changed.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[start..<end]) }

  mutating func append(_ new: UnsafeRawBufferPointer) {
    guard let source = new.baseAddress, new.count > 0 else { return }
    if memory.count - end < new.count { makeRoom(for: new.count) }
    memory.baseAddress?.advanced(by: end).copyMemory(from: source, byteCount: new.count)
    end += new.count
  }

  /// Moves as many bytes as fit to `buffer`.
  ///
  /// - Returns: The number of bytes moved.
  mutating func move(to buffer: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(buffer.count, end - start)
    guard count > 0, let source = memory.baseAddress else { return 0 }
    buffer.baseAddress?.copyMemory(from: source.advanced(by: start), byteCount: count)
    start += count
    if isEmpty { removeAll() }
    return count
  }

  /// Discards all bytes but keeps the memory.
  mutating func removeAll() {
    start = 0
    end = 0
  }

  private mutating func makeRoom(for count: Int) {
    let held = bytes
    if held.count + count <= memory.count / 2 {
      // The bytes moved out have left enough space at the front; source and target may overlap.
      memory.copyMemory(from: held)
    } else {
      // Grows by half, so that small appends do not reallocate each time.
      let larger = UnsafeMutableRawBufferPointer.allocate(
        byteCount: max(held.count + count, memory.count + memory.count / 2), alignment: 1)
      larger.copyMemory(from: held)
      memory.deallocate()
      memory = larger
    }
    start = 0
    end = held.count
  }
}

/// OpenSSL's memory BIOs, used for reading and writing PEM. Each exists for one call.
enum MemoryBIO {
  /// Calls `body` with a BIO that reads `text`.
  static func reading<Result>(_ text: String, _ body: (OpaquePointer) throws -> Result) throws -> Result {
    // The line feed is harmless in PEM and ensures that the buffer has an address.
    let bytes = Array(text.utf8) + [UInt8(ascii: "\n")]
    return try bytes.withUnsafeBytes { buffer in
      // The BIO refers to the bytes without copying them; neither outlives this call.
      guard let count = Int32(exactly: buffer.count), let bio = BIO_new_mem_buf(buffer.baseAddress, count) else {
        throw TLSError("cannot read a text of \(buffer.count) bytes")
      }
      defer { BIO_free(bio) }
      return try body(bio)
    }
  }

  /// Returns the bytes that `body` writes to a BIO.
  static func written(_ body: (OpaquePointer) throws -> Void) throws -> [UInt8] {
    guard let bio = BIO_new(BIO_s_mem()) else { throw TLSError("no memory to write to") }
    defer { BIO_free(bio) }
    try body(bio)
    var data: UnsafeMutablePointer<CChar>?
    let count = apns_BIO_get_mem_data(bio, &data)
    // The BIO owns the bytes, so they are copied before it is freed.
    return [UInt8](UnsafeRawBufferPointer(start: data, count: data == nil ? 0 : max(0, count)))
  }

  /// Returns the text that `body` writes to a BIO.
  static func writtenText(_ body: (OpaquePointer) throws -> Void) throws -> String {
    String(decoding: try written(body), as: UTF8.self)
  }

  /// A pass phrase callback that fails. Without one, OpenSSL would ask on the terminal.
  static let noPassphrase: Passphrase = { _, _, _, _ in -1 }

  /// OpenSSL's `pem_password_cb`: buffer, buffer size, whether it is for encryption, user data.
  typealias Passphrase =
    @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32
}
