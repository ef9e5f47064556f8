import NIOCore

/// A header of the PROXY protocol, version 2, in which a TCP balancer announces the address of its client. Source:
/// https://www.haproxy.org/download/2.8/doc/proxy-protocol.txt, section 2.2.
struct ProxyProtocolHeader: Equatable {
  /// The client's address; nil if the balancer announces none: for a connection of its own (LOCAL), and for other kinds
  /// of addresses than IPv4 and IPv6.
  var client: MockServer.Endpoint?

  /// The reason for which a header is invalid.
  enum Problem: Error, Equatable, CustomStringConvertible {
    case version1
    case noSignature
    case version(UInt8)
    case command(UInt8)
    case tooLong(Int)
    case tooShort(Int)

    var description: String {
      switch self {
      case .version1: "a header of PROXY protocol version 1: configure version 2 (haproxy: send-proxy-v2)"
      case .noSignature: "no header of PROXY protocol version 2: configure it in the balancer (haproxy: send-proxy-v2)"
      case .version(let version): "a PROXY protocol header of version \(version): only version 2 is supported"
      case .command(let command): "a PROXY protocol header with the unknown command \(command)"
      case .tooLong(let length):
        "a PROXY protocol header of \(length) bytes: at most \(ProxyProtocolHeader.maxLength) are accepted"
      case .tooShort(let length): "a PROXY protocol header whose \(length) bytes are too few for its addresses"
      }
    }
  }

  static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]
  /// The largest accepted length of addresses and TLVs in bytes. Balancers send less than 300.
  static let maxLength = 4096
  private static let fixedLength = 16

  /// Parses the header at the beginning of `bytes` and consumes it.
  ///
  /// - Returns: nil if more bytes are needed.
  /// - Throws: `Problem`, as soon as the bytes cannot be the beginning of a valid header.
  init?(_ bytes: inout ByteBuffer) throws(Problem) {
    let start = bytes.readableBytesView.prefix(Self.signature.count)
    guard Self.signature.starts(with: start) else {
      throw "PROXY ".utf8.starts(with: start.prefix(6)) ? .version1 : .noSignature
    }
    guard
      let (kind, family, length) = bytes.getMultipleIntegers(
        at: bytes.readerIndex + start.count, as: (UInt8, UInt8, UInt16).self)
    else { return nil }
    guard kind >> 4 == 2 else { throw .version(kind >> 4) }
    guard kind & 15 <= 1 else { throw .command(kind & 15) }
    guard length <= Self.maxLength else { throw .tooLong(Int(length)) }
    let isLocal = kind & 15 == 0
    // The upper half is the address family: 1 is IPv4, 2 is IPv6.
    let size = isLocal ? 0 : family >> 4 == 1 ? 4 : family >> 4 == 2 ? 16 : 0
    // Two addresses, two ports; TLVs may follow.
    guard length >= (size == 0 ? 0 : 2 * size + 4) else { throw .tooShort(Int(length)) }
    guard bytes.readableBytes >= Self.fixedLength + Int(length) else { return nil }
    bytes.moveReaderIndex(forwardBy: Self.fixedLength)
    guard var content = bytes.readSlice(length: Int(length)) else { return nil }
    guard size > 0, let address = content.readSlice(length: size) else { return }
    content.moveReaderIndex(forwardBy: size)
    client = content.readInteger(as: UInt16.self).flatMap { port in
      (try? SocketAddress(packedIPAddress: address, port: Int(port))).flatMap(MockServer.Endpoint.init(_:))
    }
  }
}

/// Reads the PROXY protocol header of a connection, which then continues with TLS.
final class ProxyProtocolHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private let preamble: PreambleContext
  private var received = ByteBuffer()

  init(_ preamble: PreambleContext) { self.preamble = preamble }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    received.writeImmutableBuffer(unwrapInboundIn(data))
    do {
      guard let header = try ProxyProtocolHeader(&received) else { return }
      var log = preamble.log
      if let client = header.client {
        log = preamble.listener.connectionLog(log.number, client: client)
        preamble.listener.state.connections.replace(log)
      }
      try preamble.complete(context, [try preamble.listener.secureHandler(log)])
      if received.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(received)) }
      context.pipeline.syncOperations.removeHandler(self, promise: nil)
    } catch {
      preamble.logClientError("\(error); closed")
      context.close(promise: nil)
    }
  }
}
