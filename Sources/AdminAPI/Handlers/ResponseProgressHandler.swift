internal import NIOCore
internal import NIOHTTPTypes

/// Closes a connection whose client reads a response too slowly, so that unread responses occupy neither connections nor
/// memory for ever. A response that has nothing to send, such as that of a wait, may take any time. Also keeps small what is
/// buffered for each connection.
final class ResponseProgressHandler: ChannelOutboundHandler, RemovableChannelHandler {
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  /// The interval after which progress is checked.
  static let interval = TimeAmount.seconds(30)
  /// The number of bytes that must have left in an interval in which some were always waiting: 1 KiB per second.
  static let minimum = 30 << 10

  /// The bytes that were written but not passed to the system.
  private var waiting = 0
  /// The bytes that were passed to the system in this interval.
  private var sent = 0
  private var check: Scheduled<Void>?

  /// What the system buffers for a client, in bytes; Linux doubles it. By default it grows to megabytes.
  private static let systemBuffer = 128 << 10
  /// What is buffered here for a client before writers have to wait, in bytes.
  private static let buffer = ChannelOptions.Types.WriteBufferWaterMark(low: 4 << 10, high: 16 << 10)

  /// The bytes that are read at once; the web framework keeps up to ten such pieces of a body until a handler reads them.
  private static let pieceOfBody = FixedSizeRecvByteBufferAllocator(capacity: 4 << 10)

  func handlerAdded(context: ChannelHandlerContext) {
    // If these fail, the connection is closed already.
    context.channel.setOption(.socketOption(.so_sndbuf), value: .init(Self.systemBuffer)).whenFailure { _ in }
    context.channel.setOption(.writeBufferWaterMark, value: Self.buffer).whenFailure { _ in }
    context.channel.setOption(.recvAllocator, value: Self.pieceOfBody).whenFailure { _ in }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard case .body(let bytes) = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
    let isSent = promise ?? context.eventLoop.makePromise()
    waiting += bytes.readableBytes
    isSent.futureResult.assumeIsolated().whenComplete { [self] _ in
      waiting -= bytes.readableBytes
      sent += bytes.readableBytes
      if waiting == 0 { endCheck() }
    }
    context.write(data, promise: isSent)
    if waiting > 0, check == nil { scheduleCheck(context) }
  }

  func handlerRemoved(context: ChannelHandlerContext) { endCheck() }

  private func scheduleCheck(_ context: ChannelHandlerContext) {
    sent = 0
    let channel = context.channel
    check = context.eventLoop.assumeIsolated().scheduleTask(in: Self.interval) { [self] in
      guard sent >= Self.minimum else { return channel.close(promise: nil) }
      scheduleCheck(context)
    }
  }

  private func endCheck() {
    check?.cancel()
    check = nil
  }
}
