import NIOCore
import NIOHTTP1

/// Answers the CONNECT request of a client that uses the server as its HTTP proxy. The connection then continues as one
/// to an APNs listener: the proxy itself never connects to anything.
final class ConnectProxyHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = ByteBuffer

  /// Apple's push hosts, among them those of the former binary interface (Protocol.md, section 1.1).
  static let hosts =
    ServerNames.usual.filter { $0.hasSuffix(".push.apple.com") }
    + ["gateway.push.apple.com", "gateway.sandbox.push.apple.com"]
  /// The ports of Apple's push hosts.
  static let ports: Set = [443, 2195, 2196, 2197]

  /// A response that refuses a request.
  struct Refusal: Equatable {
    let status: HTTPResponseStatus
    /// The problem and its solution, in one sentence.
    let text: String
  }

  private let preamble: PreambleContext
  private let decoder: ByteToMessageHandler<HTTPRequestDecoder>
  private var isRefused = false

  init(_ preamble: PreambleContext, decoder: ByteToMessageHandler<HTTPRequestDecoder>) {
    self.preamble = preamble
    self.decoder = decoder
  }

  /// Returns why a request is refused; nil if it is accepted. Its header fields, also `proxy-authorization`, are
  /// ignored.
  static func refusal(_ method: HTTPMethod, _ target: String) -> Refusal? {
    guard method == .CONNECT else {
      return Refusal(
        status: .methodNotAllowed,
        text: "This is an HTTP CONNECT proxy for Apple's push hosts; use it for https:// addresses only.")
    }
    if let endpoint = MockServer.Endpoint(target), hosts.contains(endpoint.host.lowercased()),
      ports.contains(endpoint.port)
    {
      return nil
    }
    return Refusal(
      status: .forbidden,
      text:
        "This proxy serves Apple's push hosts on the ports 443 and 2195 to 2197 itself and connects to nothing else: "
        + "exclude other hosts from the client's proxy setting. The hosts are \(hosts.joined(separator: ", ")).")
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      if head.headers["host"].count > 1 {
        let refusal = Refusal(
          status: .badRequest, text: "The request has more than one Host field: send one (RFC 9112 section 3.2).")
        return refuse(refusal, "the proxy refused a request with more than one Host field", context)
      }
      guard let refusal = Self.refusal(head.method, head.uri) else { return }
      // The target without anything that could be secret, such as the path of a device token.
      let target = head.method == .CONNECT ? "\(head.uri.prefix(80))" : "a request that is not CONNECT"
      refuse(refusal, "the proxy refused \(target): only Apple's push hosts are served", context)
    case .end where !isRefused: connect(context)
    case .body, .end: break
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard error is HTTPParserError else { return context.close(promise: nil) }
    let refusal = Refusal(
      status: .badRequest,
      text:
        "This is an HTTP CONNECT proxy, and the request is not HTTP/1.1: connect to a listener of --apns without one.")
    refuse(refusal, "no valid HTTP/1.1 request on the proxy (\(error)); TLS clients connect to --apns", context)
  }

  private func connect(_ context: ChannelHandlerContext) {
    // aioapns searches the bytes for `HTTP/1.1 200 Connect`, whatever version it sent.
    let response = "HTTP/1.1 200 Connection established\r\n\r\n"
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: response)), promise: nil)
    do {
      try preamble.complete(context, [try preamble.listener.secureHandler(preamble.log)])
    } catch {
      return context.close(promise: nil)
    }
    let pipeline = context.pipeline.syncOperations
    pipeline.removeHandler(self, promise: nil)
    // Forwards the bytes that followed the request.
    pipeline.removeHandler(decoder, promise: nil)
  }

  private func refuse(_ refusal: Refusal, _ logMessage: String, _ context: ChannelHandlerContext) {
    guard !isRefused else { return }
    isRefused = true
    preamble.logClientError(logMessage)
    context.writeAndFlush(wrapOutboundOut(refusal.response)).assumeIsolated().whenComplete { _ in
      context.closeAfterLastBytes()
    }
  }
}

extension ConnectProxyHandler.Refusal {
  /// The response.
  var response: ByteBuffer {
    ByteBuffer(
      string: """
        HTTP/1.1 \(status.code) \(status.reasonPhrase)\r
        server: \(ListenerName.proxy)\r
        content-type: text/plain\r
        content-length: \(text.utf8.count + 1)\r
        connection: close\r
        \r
        \(text)

        """)
  }
}

extension ChannelHandlerContext {
  /// Sends FIN and closes the socket 250 ms later, so that a reset for unread input does not overtake the last bytes.
  func closeAfterLastBytes() {
    close(mode: .output, promise: nil)
    let channel = channel
    eventLoop.scheduleTask(in: .milliseconds(250)) { channel.close(promise: nil) }
  }
}
