import APNSMockInbox
import Logging
import NIOCore
import NIOHTTP1

/// The transition of a connection from the handlers that read its preamble (what precedes TLS and HTTP/2) to its
/// `ConnectionHandler`.
struct PreambleContext {
  let listener: Listener
  let log: ConnectionLog

  /// Logs a client error.
  func logClientError(_ message: String) {
    var logger = listener.logger
    logger[metadataKey: "connection"] = "\(log.id)"
    listener.state.clientErrorLog.log(.notHTTP2, message, of: log, to: logger)
  }

  /// Adds the handlers of the rest of the connection and ends the guard.
  func complete(_ context: ChannelHandlerContext, _ handlers: [any ChannelHandler]) throws {
    let pipeline = context.pipeline.syncOperations
    try pipeline.addHandlers(handlers)
    let preambleGuard = try pipeline.handler(type: PreambleGuard.self)
    pipeline.removeHandler(preambleGuard, promise: nil)
  }
}

/// Closes a connection whose preamble does not arrive in time, when the server shuts down, or on a command of the admin
/// API. Removed when `ConnectionHandler` takes over.
final class PreambleGuard: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer

  private static let timeout = TimeAmount.seconds(10)

  private let preamble: PreambleContext
  private var timer: Scheduled<Void>?

  init(_ preamble: PreambleContext) { self.preamble = preamble }

  func channelActive(context: ChannelHandlerContext) {
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(in: Self.timeout) {
      let (handler, context) = bound.value
      handler.preamble.logClientError("nothing complete was received within 10 s, closed")
      context.close(promise: nil)
    }
    context.fireChannelActive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is ConnectionAction || event is Connections.ShutdownRequested { context.close(promise: nil) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    timer?.cancel()
    preamble.log.add(.closed, "", at: preamble.listener.state.clock.now)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }
}

/// Distinguishes HTTP/2 with prior knowledge from HTTP/1.1 on a connection without TLS, by its first bytes.
final class CleartextProtocolDetector: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  /// The beginning of the HTTP/2 client preface. No method of HTTP/1.1 begins with it.
  private static let preface = Array("PRI ".utf8)

  private let preamble: PreambleContext
  private var received = ByteBuffer()

  init(_ preamble: PreambleContext) { self.preamble = preamble }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    received.writeImmutableBuffer(unwrapInboundIn(data))
    let first = received.readableBytesView.prefix(Self.preface.count)
    guard first.count == Self.preface.count || !Self.preface.starts(with: first) else { return }
    do {
      if first.elementsEqual(Self.preface) {
        try preamble.complete(context, [preamble.listener.cleartextHandler(preamble.log, http: .http2)])
      } else {
        // A TLS handshake record begins with 22.
        if first.first == 22 {
          preamble.logClientError("TLS on a cleartext listener: use http://, or connect to a listener of --apns")
        }
        try preamble.complete(
          context,
          [
            HTTPResponseEncoder(), ByteToMessageHandler(HTTPRequestDecoder(limitConfiguration: .provider)),
            HTTPServerPipelineHandler(), try HTTP1Translator(preamble),
            preamble.listener.cleartextHandler(preamble.log, http: .http1),
          ])
      }
      context.fireChannelRead(wrapInboundOut(received))
      context.pipeline.syncOperations.removeHandler(self, promise: nil)
    } catch {
      context.close(promise: nil)
    }
  }
}
