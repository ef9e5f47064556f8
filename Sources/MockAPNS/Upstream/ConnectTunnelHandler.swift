import NIOCore

/// Makes a tunnel through an HTTP proxy (RFC 9110 section 9.3.6), then passes the connection to another handler.
final class ConnectTunnelHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The largest response head of a proxy, in bytes.
  private static let sizeLimit = 8 << 10
  private static let end: [UInt8] = Array("\r\n\r\n".utf8)

  private let proxy: HTTPProxy
  private let target: MockServer.Endpoint
  private let next: UpstreamConnection
  private var received: [UInt8] = []

  /// - Parameter next: The handler of the connection to `target`.
  init(through proxy: HTTPProxy, to target: MockServer.Endpoint, then next: UpstreamConnection) {
    self.proxy = proxy
    self.target = target
    self.next = next
  }

  func channelActive(context: ChannelHandlerContext) {
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: proxy.request(for: target))), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    received.append(contentsOf: unwrapInboundIn(data).readableBytesView)
    guard let head = received.firstRange(of: Self.end) else {
      if received.count > Self.sizeLimit { fail("sent more than 8 KiB without a response", context) }
      return
    }
    let status = String(decoding: received.prefix { $0 != UInt8(ascii: "\r") }.prefix(80), as: UTF8.self)
    let words = status.split(separator: " ")
    guard words.count > 1, words[0].hasPrefix("HTTP/1."), words[1].utf8.count == 3, words[1].hasPrefix("2") else {
      return fail("refused the connection to \(target): \(status)", context)
    }
    let rest = ByteBuffer(bytes: received[head.upperBound...])
    do {
      let pipeline = context.pipeline.syncOperations
      try pipeline.addHandler(next, position: .after(self))
      if rest.readableBytes > 0 { context.fireChannelRead(NIOAny(rest)) }
      pipeline.removeHandler(self, promise: nil)
    } catch {
      next.end("\(error)")
      context.close(promise: nil)
    }
  }

  func channelInactive(context: ChannelHandlerContext) { next.end("the proxy \(proxy.endpoint) closed the connection") }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    next.end("the connection to the proxy \(proxy.endpoint) failed: \(UpstreamQueue.reason(error))")
    context.close(promise: nil)
  }

  private func fail(_ problem: String, _ context: ChannelHandlerContext) {
    next.end("the proxy \(proxy.endpoint) \(problem)")
    context.close(promise: nil)
  }
}
