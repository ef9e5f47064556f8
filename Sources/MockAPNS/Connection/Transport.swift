import APNSMockTLSEngine

/// The layer below HTTP/2 on a provider connection: TLS, or none on a cleartext listener.
enum Transport {
  case tls(TLSConnection)
  case cleartext(CleartextBuffers)

  /// The TLS connection; nil without TLS.
  var tls: TLSConnection? {
    if case .tls(let connection) = self { connection } else { nil }
  }

  /// Continues the handshake; see `TLSConnection`. Without TLS there is none.
  func handshake() throws -> TLSConnection.Handshake {
    switch self {
    case .tls(let connection): try connection.handshake()
    case .cleartext: .done
    }
  }

  /// Receives bytes from the client. During `work`, `read` takes them directly from `bytes`; what remains is copied
  /// afterwards.
  func receive(_ bytes: UnsafeRawBufferPointer, while work: () -> Void = {}) {
    switch self {
    case .tls(let connection): connection.receive(bytes, while: work)
    case .cleartext(let buffers):
      buffers.input.append(contentsOf: bytes)
      work()
    }
  }

  /// Reads as many bytes into `buffer` as were received and fit.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> TLSConnection.ReadResult {
    switch self {
    case .tls(let connection): try connection.read(into: buffer)
    case .cleartext(let buffers): buffers.read(into: buffer)
    }
  }

  /// Appends bytes to the output.
  func write(_ bytes: UnsafeRawBufferPointer) throws {
    switch self {
    case .tls(let connection): try connection.write(bytes)
    case .cleartext(let buffers): buffers.output.append(contentsOf: bytes)
    }
  }

  /// Appends the layer's last message to the output.
  func close() { tls?.close() }

  /// Passes the pending output to `body` and clears it.
  func takeOutput(_ body: (UnsafeRawBufferPointer) -> Void) {
    switch self {
    case .tls(let connection): connection.takeOutput(body)
    case .cleartext(let buffers):
      let output = buffers.output
      buffers.output = []
      if !output.isEmpty { output.withUnsafeBytes(body) }
    }
  }

  /// Releases the memory of empty buffers.
  func releaseBuffers() { tls?.releaseBuffers() }
}

/// The bytes of a connection without TLS that are not yet processed. Confined to the connection's event loop.
final class CleartextBuffers {
  fileprivate var input: [UInt8] = []
  fileprivate var output: [UInt8] = []

  fileprivate func read(into buffer: UnsafeMutableRawBufferPointer) -> TLSConnection.ReadResult {
    let count = min(input.count, buffer.count)
    guard count > 0 else { return .waiting }
    buffer.copyBytes(from: input.prefix(count))
    input.removeFirst(count)
    return .bytes(count)
  }
}
