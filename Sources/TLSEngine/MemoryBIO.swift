internal import COpenSSL

/// OpenSSL's streams over memory, through which it reads and writes PEM. Each lives for one call.
enum MemoryBIO {
  /// Lets `body` read `text` as a stream.
  static func reading<Result>(_ text: String, _ body: (OpaquePointer) throws -> Result) throws -> Result {
    // The line feed does no harm to PEM and sees to it that there is an address to give to OpenSSL.
    let bytes = Array(text.utf8) + [UInt8(ascii: "\n")]
    return try bytes.withUnsafeBytes { buffer in
      // The BIO refers to the bytes and does not copy them; both end with this call.
      guard let count = Int32(exactly: buffer.count), let bio = BIO_new_mem_buf(buffer.baseAddress, count) else {
        throw TLSError("cannot read a text of \(buffer.count) bytes")
      }
      defer { BIO_free(bio) }
      return try body(bio)
    }
  }

  /// What `body` wrote to a stream.
  static func written(_ body: (OpaquePointer) throws -> Void) throws -> [UInt8] {
    guard let bio = BIO_new(BIO_s_mem()) else { throw TLSError("no memory to write to") }
    defer { BIO_free(bio) }
    try body(bio)
    var data: UnsafeMutablePointer<CChar>?
    let count = apns_BIO_get_mem_data(bio, &data)
    // The bytes belong to the BIO: copied before it goes.
    return [UInt8](UnsafeRawBufferPointer(start: data, count: data == nil ? 0 : max(0, count)))
  }

  /// The text that `body` wrote to a stream.
  static func writtenText(_ body: (OpaquePointer) throws -> Void) throws -> String {
    String(decoding: try written(body), as: UTF8.self)
  }

  /// Given to OpenSSL wherever it might want a pass phrase: there is none. Without it OpenSSL would ask on the terminal.
  static let noPassphrase: Passphrase = { _, _, _, _ in -1 }

  /// OpenSSL's `pem_password_cb`: buffer, its size, whether it is for writing, user data.
  typealias Passphrase =
    @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32
}
