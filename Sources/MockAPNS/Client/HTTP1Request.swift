package import APNSMockTLSEngine
package import NIOCore
package import NIOHTTP1
import NIOPosix

/// One HTTP/1.1 request over a connection of its own. Redirects are not followed.
package struct HTTP1Request: Sendable {
  /// The server.
  package let endpoint: MockServer.Endpoint
  package let head: HTTPRequestHead
  package let body: [UInt8]?
  /// The time limit for the connection, and again for the response.
  package let timeout: TimeAmount
  /// Returns whether an address to which the server's name was resolved may be connected to.
  package var isAllowed: @Sendable (SocketAddress) -> Bool = { _ in true }
  /// The certificate authorities to trust, for a request over TLS; nil for one without.
  package var tls: TLSContext?
  /// The maximum number of bytes of the response's body that are kept.
  package var bodyLimit = Int.max

  /// A response, whatever its status.
  package struct Response: Sendable {
    package let status: Int
    package let body: [UInt8]
  }

  /// The reasons why there is no complete response, besides those of NIO.
  package enum Failure: Error, CustomStringConvertible {
    case timedOut
    case notHTTP
    case closed
    case addressNotAllowed(String)
    case certificateNotTrusted(String, CertificateFault.Kind)

    package var description: String {
      switch self {
      case .timedOut: "there was no response in time"
      case .notHTTP: "the response is not HTTP"
      case .closed: "the connection was closed before the response was complete"
      case .addressNotAllowed(let address): "connections to \(address) are not allowed"
      case .certificateNotTrusted(let problem, _): "the certificate is not trusted: \(problem)"
      }
    }
  }

  /// Creates a request.
  ///
  /// - Parameter type: The content type of the body.
  package init(
    _ head: HTTPRequestHead, body: [UInt8]?, type: String, to endpoint: MockServer.Endpoint, timeout: TimeAmount
  ) {
    var head = head
    if let body {
      head.headers.add(name: "content-type", value: type)
      head.headers.add(name: "content-length", value: String(body.count))
    }
    (self.head, self.body, self.endpoint, self.timeout) = (head, body, endpoint, timeout)
  }

  /// Sends the request and returns the response.
  ///
  /// - Throws: `Failure`, or an error of NIO: `NIOConnectionError` if there is no connection.
  package func send() async throws -> Response {
    let group = MultiThreadedEventLoopGroup.singleton
    let promise = group.any().makePromise(of: Response.self)
    let connecting = ClientBootstrap(group: group)
      .connectTimeout(timeout)
      .channelInitializer { [self] channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          try pipeline.addHandler(AddressCheck(isAllowed: isAllowed))
          if let tls {
            try pipeline.addHandler(TLSHandler(TLSConnection(client: tls, serverName: endpoint.host)))
          }
          try pipeline.addHTTPClientHandlers()
          try pipeline.addHandler(ResponseCollector(promise: promise, limit: bodyLimit))
        }
      }
      .connect(host: endpoint.host, port: endpoint.port)
    connecting.whenFailure { promise.fail($0) }
    connecting.whenSuccess { [self] channel in
      let limit = channel.eventLoop.scheduleTask(in: timeout) { promise.fail(Failure.timedOut) }
      promise.futureResult.whenComplete { _ in
        limit.cancel()
        channel.close(promise: nil)
      }
      channel.write(HTTPClientRequestPart.head(head), promise: nil)
      if let body { channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil) }
      channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    }
    // A canceled task waits neither for the connection nor for the response.
    return try await withTaskCancellationHandler {
      try await promise.futureResult.get()
    } onCancel: {
      promise.fail(CancellationError())
    }
  }
}

/// Encrypts what later handlers write, and decrypts what the server sends. Confined to the connection's event loop.
private final class TLSHandler: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let tls: TLSConnection
  private var isEstablished = false
  /// What was written before the handshake was complete.
  private var unsent: [ByteBuffer] = []

  init(_ tls: TLSConnection) { self.tls = tls }

  func channelActive(context: ChannelHandlerContext) {
    exchange(context)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    unwrapInboundIn(data).withUnsafeReadableBytes { tls.receive($0) }
    exchange(context)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    unsent.append(unwrapOutboundIn(data))
    promise?.succeed()
  }

  func flush(context: ChannelHandlerContext) { exchange(context) }

  private func exchange(_ context: ChannelHandlerContext) {
    do {
      if !isEstablished {
        guard try tls.handshake() == .done else { return tls.flush(to: context) }
        isEstablished = true
      }
      for buffer in unsent { try buffer.withUnsafeReadableBytes { try tls.write($0) } }
      unsent = []
      tls.flush(to: context)
      var bytes = [UInt8](repeating: 0, count: 16_384)
      while true {
        switch try bytes.withUnsafeMutableBytes({ try tls.read(into: $0) }) {
        case .bytes(let count): context.fireChannelRead(wrapInboundOut(ByteBuffer(bytes: bytes[..<count])))
        case .waiting: return
        case .closed: return context.close(promise: nil)
        }
      }
    } catch {
      let fault = isEstablished ? nil : tls.peerCertificateFault
      // Before anything is written: if the server has closed the connection, writing ends it.
      context.fireErrorCaught(fault.map { HTTP1Request.Failure.certificateNotTrusted("\(error)", $0.kind) } ?? error)
      tls.flush(to: context)
      context.close(promise: nil)
    }
  }
}

/// Checks each address before the connection to it is opened, so that no other resolution of the name comes in between.
private final class AddressCheck: ChannelOutboundHandler {
  typealias OutboundIn = ByteBuffer

  private let isAllowed: @Sendable (SocketAddress) -> Bool

  init(isAllowed: @escaping @Sendable (SocketAddress) -> Bool) { self.isAllowed = isAllowed }

  func connect(context: ChannelHandlerContext, to address: SocketAddress, promise: EventLoopPromise<Void>?) {
    if isAllowed(address) { return context.connect(to: address, promise: promise) }
    promise?.fail(HTTP1Request.Failure.addressNotAllowed(address.ipAddress ?? "\(address)"))
  }
}

/// Collects the parts of one response.
private final class ResponseCollector: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart

  private let promise: EventLoopPromise<HTTP1Request.Response>
  private let limit: Int
  private var status = 0
  private var body: [UInt8] = []

  init(promise: EventLoopPromise<HTTP1Request.Response>, limit: Int) { (self.promise, self.limit) = (promise, limit) }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): status = Int(head.status.code)
    case .body(let part): body.append(contentsOf: part.readableBytesView.prefix(limit - body.count))
    case .end: promise.succeed(HTTP1Request.Response(status: status, body: body))
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    promise.fail(error is HTTPParserError ? HTTP1Request.Failure.notHTTP : error)
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) { promise.fail(HTTP1Request.Failure.closed) }
}
