import APNSMockHTTP2Session
import APNSMockHTTPMessage
import NIOCore
import NIOHTTP1

/// Translates HTTP/1.1 of a client into HTTP/2 for `ConnectionHandler`, in memory, so that pushes over HTTP/1.1 are
/// processed like all others: the same rules, faults and records.
///
/// One request is in progress at a time (`HTTPServerPipelineHandler`). A reset stream closes the connection, a GOAWAY
/// becomes `connection: close`.
final class HTTP1Translator: ChannelDuplexHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = HTTPServerResponsePart

  /// The time limit for the rest of a request after its head, as for an HTTP/2 stream.
  private static let requestTimeout =
    TimeAmount(HTTP2Limits.overdueCheckInterval) * Int(HTTP2Limits.maxOverdueChecks)

  private let preamble: PreambleContext
  private let session: HTTP2ClientSession
  /// The head of the request in progress; nil while none is.
  private var head: HTTPRequestHead?
  private var body: [UInt8] = []
  /// Whether the request in progress was passed on.
  private var isSubmitted = false
  /// Whether the connection closes after the next response.
  private var closes = false
  private var isClosed = false
  private var timer: Scheduled<Void>?

  /// - Throws: `HTTP2Failure` if nghttp2 cannot allocate memory.
  init(_ preamble: PreambleContext) throws {
    self.preamble = preamble
    session = try HTTP2ClientSession()
  }

  // MARK: - Requests

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isClosed else { return }
    switch unwrapInboundIn(data) {
    case .head(let head):
      // RFC 9112 section 3.2. HTTP/1.0 has no such field.
      let hosts = head.headers["host"].count
      guard hosts == 1 || hosts == 0 && head.version != .http1_1 else {
        preamble.logClientError("its HTTP/1.1 request has \(hosts) Host fields, refused")
        return refuse("The request has \(hosts) Host fields: send one (RFC 9112 section 3.2).", context)
      }
      self.head = head
      body = []
      isSubmitted = false
      // After CONNECT or the offer of an upgrade, NIO's decoder reads no further request.
      if !head.isKeepAlive || head.method == .CONNECT || head.headers.contains(name: "upgrade") { closes = true }
      startTimer(context)
      if head.version != .http1_0, head.headers[canonicalForm: "expect"].contains("100-continue") {
        context.writeAndFlush(
          wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .continue))), promise: nil)
      }
    case .body(let part):
      guard !isSubmitted else { return }
      body.append(contentsOf: part.readableBytesView.prefix(HTTP2Limits.maxBodySize + 1 - body.count))
      guard body.count > HTTP2Limits.maxBodySize else { return }
      // Respond without waiting for the rest, as with HTTP/2.
      closes = true
      head?.headers.remove(name: "content-length")
      submit(context)
    case .end:
      timer?.cancel()
      if !isSubmitted { submit(context) }
    }
  }

  private func submit(_ context: ChannelHandlerContext) {
    guard let head else { return }
    isSubmitted = true
    do {
      _ = try session.request(headers: HeaderList(head), body: body)
      body = []
      passOn(context)
    } catch {
      context.close(promise: nil)
    }
  }

  /// Passes the frames that the session has to send on to `ConnectionHandler`.
  private func passOn(_ context: ChannelHandlerContext) {
    var frames: [UInt8] = []
    session.appendOutput(to: &frames)
    if !frames.isEmpty { context.fireChannelRead(wrapInboundOut(ByteBuffer(bytes: frames))) }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard let error = error as? HTTPParserError, head == nil, !isClosed else { return context.close(promise: nil) }
    refuse(
      "This listener of apns-mock expects HTTP/2 with prior knowledge or HTTP/1.1, without TLS (\(error)).", context)
  }

  // MARK: - Responses

  /// Responds with 400 and closes the connection.
  private func refuse(_ text: String, _ context: ChannelHandlerContext) {
    isClosed = true
    let headers: HTTPHeaders = [
      "server": ListenerName.cleartext, "content-type": "text/plain", "content-length": "\(text.utf8.count)",
      "connection": "close",
    ]
    respond(HTTPResponseHead(version: .http1_1, status: .badRequest, headers: headers), Array(text.utf8), context)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    do {
      for event in try unwrapOutboundIn(data).withUnsafeReadableBytes({ try session.receive($0) }) {
        switch event {
        case .response(_, let response): respond(response, context)
        case .reset, .excessiveResponse: context.close(promise: nil)
        case .goAway: closes = true
        case .settings: break
        }
      }
    } catch {
      context.close(promise: nil)
    }
    promise?.succeed()
    // Acknowledgements and window updates. Not now, because `ConnectionHandler` is still writing.
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    context.eventLoop.execute { bound.value.0.passOn(bound.value.1) }
  }

  private func respond(_ response: HTTPResponse, _ context: ChannelHandlerContext) {
    guard let request = head, !isClosed else { return }
    head = nil
    var headers = HTTPHeaders()
    response.headers.forEachField { name, value in
      let name = response.headers.string(name)
      if !name.hasPrefix(":") { headers.add(name: name, value: response.headers.string(value)) }
    }
    headers.replaceOrAdd(name: "content-length", value: "\(response.body.count)")
    if closes {
      isClosed = true
      headers.add(name: "connection", value: "close")
    } else if request.version == .http1_0 {
      headers.add(name: "connection", value: "keep-alive")
    }
    let status = HTTPResponseStatus(statusCode: response.status)
    respond(HTTPResponseHead(version: request.version, status: status, headers: headers), response.body, context)
  }

  private func respond(_ head: HTTPResponseHead, _ body: [UInt8], _ context: ChannelHandlerContext) {
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    if !body.isEmpty { context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: body)))), promise: nil) }
    let isWritten = context.writeAndFlush(wrapOutboundOut(.end(nil)))
    if isClosed { isWritten.assumeIsolated().whenComplete { _ in context.closeAfterLastBytes() } }
  }

  // MARK: - Timer

  func channelInactive(context: ChannelHandlerContext) {
    timer?.cancel()
    context.fireChannelInactive()
  }

  private func startTimer(_ context: ChannelHandlerContext) {
    timer?.cancel()
    let bound = NIOLoopBound((preamble, context), eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(in: Self.requestTimeout) {
      let (preamble, context) = bound.value
      preamble.logClientError("its request is incomplete after 30 s, closed")
      context.close(promise: nil)
    }
  }
}

extension HeaderList {
  /// Creates the HTTP/2 header list of an HTTP/1.1 request with at most one Host field, without the fields that concern its
  /// connection (RFC 9113 section 8.2.2).
  init(_ head: HTTPRequestHead) {
    var path = head.uri
    var authority = head.headers.first(name: "host") ?? "localhost"
    // The absolute form, whose authority precedes that of Host (RFC 9112 section 3.2.2).
    if !path.hasPrefix("/"), let start = path.firstRange(of: "://")?.upperBound {
      authority = String(path[start...].prefix { $0 != "/" })
      path = path[start...].firstIndex(of: "/").map { String(path[$0...]) } ?? "/"
    }
    self.init([
      (":method", head.method.rawValue), (":scheme", "http"), (":path", path), (":authority", authority),
    ])
    var excluded: Set = [
      "connection", "expect", "host", "http2-settings", "keep-alive", "proxy-connection", "te", "transfer-encoding",
      "upgrade",
    ]
    excluded.formUnion(head.headers[canonicalForm: "connection"].map { $0.lowercased() })
    for (name, value) in head.headers where !excluded.contains(name.lowercased()) {
      append(name: name.lowercased(), value: value)
    }
  }
}
