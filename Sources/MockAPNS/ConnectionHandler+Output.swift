import HTTP2Session
import Logging
import NIOCore
import TLSEngine

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// How answers leave: frames, cipher text, socket.
extension ConnectionHandler {
  /// How many bytes of frames are made at once, at least, when there are many.
  private static let writeSize = 64 << 10

  /// Records first, then answers: a push is readable before its answer leaves.
  ///
  /// Answers become frames only while the client reads: frames are what takes memory.
  func flush(_ context: ChannelHandlerContext) {
    guard phase == .open, let session, !isFlushing else { return }
    // What is written may leave before the call returns, and then the channel tells that it is writable again.
    isFlushing = true
    var isDrained = false
    while !isDrained, isWritable(context), phase == .open {
      isDrained = writeFrames(of: session, upTo: Self.writeSize, context)
    }
    isFlushing = false
    // What nothing is written of yet: a client that does not read.
    path?.commit()
    guard phase == .open else { return }
    if session.isFinished, !isLeaving, let goAway = session.goAwaySent, goAway.errorCode != 0 {
      let name = HTTP2ErrorCode.name(of: goAway.errorCode)
      complain(.protocolError, "HTTP/2 error \(goAway.errorCode) (\(name)), connection ended: \(goAway.text)")
      log.add(.goAway, "\(name) \(goAway.text)", at: state.clock.now)
    }
    if session.isFinished || (isLeaving && !session.owesAnswers) { close(context) }
  }

  /// - Returns: whether the session has nothing more to say, or cannot say it.
  @discardableResult
  func writeFrames(
    of session: HTTP2ServerSession, upTo limit: Int = .max, _ context: ChannelHandlerContext
  ) -> Bool {
    scratch.output.removeAll(keepingCapacity: true)
    let isDrained = session.drain(into: &scratch.output, upTo: limit)
    // What ended by a frame that just went out is recorded before that frame leaves, and an answer that is not among the
    // frames is not told of.
    handleEvents(of: session, context)
    path?.commit()
    do {
      try scratch.output.withUnsafeBytes { try tls.write($0) }
    } catch {
      logger.debug("\(client): \(error)")
      close(context)
      return true
    }
    writeCipherText(context)
    return isDrained
  }

  func writeCipherText(_ context: ChannelHandlerContext) {
    tls.takeOutput { put($0, context) }
  }

  /// Whether what is written now leaves, or is at least not kept for long.
  func isWritable(_ context: ChannelHandlerContext) -> Bool {
    // Whoever has nothing to keep is not asked: a push would pay for it.
    writesWaiting == 0 || context.channel.isWritable
  }

  /// Sends bytes: by the socket itself as long as it takes all of them, then by way of the channel, which keeps them until it
  /// does, until the channel has none left.
  ///
  /// The way through the channel takes a buffer, a copy and NIO's account of them. Where pushes come one by one, or are
  /// large, that is a twentieth of what a push costs.
  func put(_ bytes: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) {
    let sent = writesWaiting == 0 ? sendAtOnce(bytes, context) : 0
    guard sent < bytes.count else { return }
    let buffer = context.channel.allocator.buffer(bytes: bytes.dropFirst(sent))
    writesWaiting += 1
    context.writeAndFlush(wrapOutboundOut(buffer)).assumeIsolated().whenComplete { _ in self.writesWaiting -= 1 }
  }

  /// - Returns: how many bytes the socket took. Of an error it says nothing: the channel will meet it again and end the
  ///   connection.
  private func sendAtOnce(_ bytes: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) -> Int {
    // A channel that is active has its socket. Once it has not, the number may be another connection's.
    guard let socket, context.channel.isActive else { return 0 }
    #if canImport(Darwin)
      let flags: Int32 = 0  // NIO has set SO_NOSIGPIPE.
    #else
      let flags = Int32(MSG_NOSIGNAL)
    #endif
    return max(0, send(socket, bytes.baseAddress, bytes.count, flags))
  }
}
