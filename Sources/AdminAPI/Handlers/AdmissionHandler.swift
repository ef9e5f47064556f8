internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore
internal import NIOHTTPTypes
internal import APNSMockNotation

/// Answers health checks at once, on the event loop of their connection, and serves little else on connections of the
/// reserve (`AdminConnections`).
///
/// A client on a connection of the reserve has a second to send the head of a request. `/metrics` is served too, in five
/// seconds at most; every other request is answered with 503. The connection ends after the response.
final class AdmissionHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private enum State {
    case new
    case regular
    /// In reserve; the task closes the connection.
    case reserve(Scheduled<Void>)
    /// A regular connection whose current request was answered here; the rest of the request is dropped.
    case answered
    /// The connection's last request was answered here; everything it sends is dropped, and the task closes it.
    case ending(Scheduled<Void>)
    case closed
  }

  private static let headTimeout = TimeAmount.seconds(1)
  private static let metricsTimeout = TimeAmount.seconds(5)
  /// The time in which a client must read the last response, after which the connection is closed.
  private static let readTimeout = TimeAmount.seconds(1)

  private let isRegular: Bool
  private let health: HealthRoutes
  private var state = State.new
  /// The number of requests that were passed on and whose response is not complete.
  private var pendingResponses = 0

  /// - Parameter isRegular: Whether the connection is not one of the reserve.
  init(isRegular: Bool, health: HealthRoutes) {
    self.isRegular = isRegular
    self.health = health
  }

  func channelActive(context: ChannelHandlerContext) {
    state = isRegular ? .regular : .reserve(close(context, in: Self.headTimeout))
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    leave()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { leave() }

  private func leave() {
    switch state {
    case .reserve(let closing), .ending(let closing): closing.cancel()
    case .regular, .answered, .new, .closed: break
    }
    state = .closed
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let part = unwrapInboundIn(data)
    switch (state, part) {
    case (.ending, _), (.closed, _): return
    case (.answered, .end):
      state = .regular
      return
    case (.answered, _): return
    case (.regular, .head(let head)):
      if let answer = answer(to: head) {
        let endsConnection = head.headerFields[.connection]?.lowercased() == "close"
        state = endsConnection ? .ending(close(context, in: Self.readTimeout)) : .answered
        return write(answer, to: head, endsConnection: endsConnection, context)
      }
      pendingResponses += 1
    case (.reserve(let closing), .head(let head)):
      closing.cancel()
      if let answer = answer(to: head) ?? Self.refusal(of: head) {
        state = .ending(close(context, in: Self.readTimeout))
        return write(answer, to: head, endsConnection: true, context)
      }
      pendingResponses += 1
      state = .reserve(close(context, in: Self.metricsTimeout))
      var last = head
      last.headerFields[.connection] = "close"
      return context.fireChannelRead(wrapInboundOut(.head(last)))
    case (.regular, _), (.reserve, _), (.new, _): break
    }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .end = unwrapOutboundIn(data) { pendingResponses -= 1 }
    context.write(data, promise: promise)
  }

  private struct Answer {
    let status: HTTPResponse.Status
    let type: String
    let body: [UInt8]
  }

  /// Returns the answer to a health check; nil if it must wait for earlier responses, or for other requests.
  private func answer(to head: HTTPRequest) -> Answer? {
    // A second Host is an error, which the access rules report.
    guard pendingResponses == 0, head.method == .get || head.method == .head,
      !head.headerFields.contains(where: { $0.name.canonicalName == "host" }),
      let (status, body) = health.answer(to: Self.path(of: head))
    else { return nil }
    return Answer(status: status, type: JSONBody.type, body: body)
  }

  /// Returns the answer to a request that is not served on a connection of the reserve; nil for others.
  private static func refusal(of head: HTTPRequest) -> Answer? {
    guard path(of: head) != MetricsRoutes.path else { return nil }
    let problem = Problem(
      status: .serviceUnavailable, detail: "all connections to the admin listener are in use",
      hint: """
        Repeat the request after a second, close connections that are not needed, read responses, or start the server \
        with a higher limit of open files (`ulimit -n`).
        """)
    var writer = JSONWriter()
    problem.write(to: &writer)
    return Answer(status: problem.status, type: Problem.type, body: writer.bytes)
  }

  private static func path(of head: HTTPRequest) -> String { RequestPath.normalized(URI(head.path ?? "/").path) }

  private func write(
    _ answer: Answer, to request: HTTPRequest, endsConnection: Bool, _ context: ChannelHandlerContext
  ) {
    var fields = AdminMiddleware.fields
    fields[.contentType] = answer.type
    fields[.contentLength] = String(answer.body.count)
    if answer.status == .serviceUnavailable { fields[.retryAfter] = "1" }
    if endsConnection { fields[.connection] = "close" }
    context.write(wrapOutboundOut(.head(HTTPResponse(status: answer.status, headerFields: fields))), promise: nil)
    if request.method != .head { context.write(wrapOutboundOut(.body(ByteBuffer(bytes: answer.body))), promise: nil) }
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    // Closing the other side too could discard the response, if the client is still sending.
    if endsConnection { context.close(mode: .output, promise: nil) }
  }

  private func close(_ context: ChannelHandlerContext, in time: TimeAmount) -> Scheduled<Void> {
    let channel = context.channel
    return context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
  }
}
