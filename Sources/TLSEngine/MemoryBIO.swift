internal import COpenSSL

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
