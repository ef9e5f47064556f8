import FaultModel
import Faults
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

/// Reading from the socket.
extension ConnectionHandler {
  /// The size of the buffer that NIO keeps for each connection. A push that arrives alone usually fits.
  static let firstReadSize = 2 << 10
  /// How often the event loop's buffer is filled before other connections get their turn.
  private static let maxPortions = 4

  /// Processes the bytes that NIO read and, if they filled its buffer, reads the rest from the socket directly.
  ///
  /// With NIO alone each busy connection would keep a buffer as large as the most that it received at once. Eight of
  /// these no longer fit into a core's cache, and a thousand would take hundreds of megabytes.
  func takeInput(beginningWith beginning: ByteBuffer, _ context: ChannelHandlerContext) {
    let portion = scratch.cipherText
    guard beginning.writableBytes == 0, beginning.readableBytes < portion.count, phase != .settingsDelayed else {
      return beginning.withUnsafeReadableBytes { take($0, context) }
    }
    beginning.withUnsafeReadableBytes { portion.copyMemory(from: $0) }
    var filled = beginning.readableBytes
    for _ in 0..<Self.maxPortions {
      filled += receiveAtOnce(UnsafeMutableRawBufferPointer(rebasing: portion[filled...]), context)
      guard filled > 0 else { return }
      take(UnsafeRawBufferPointer(rebasing: portion[..<filled]), context)
      // If the buffer is not full, the socket is empty. A client that does not read its responses is not read from.
      guard filled == portion.count, isWritable(context), phase != .settingsDelayed else { return }
      filled = 0
    }
  }

  /// Processes received bytes. The pointer is valid only during the call.
  private func take(_ bytes: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) {
    if phase == .closing || phase == .silenced { return }
    // NIO had already read these few buffers when reading stopped.
    if phase == .settingsDelayed { return tls.receive(bytes) }
    lastActivity = .now()
    bytesReceived += bytes.count
    if phase == .firstByte, let first = bytes.first {
      if Self.looksLikePlainText(first) { return refusePlainText(bytes, context) }
      phase = .handshake
      tls.stopsAfterClientHello = state.activePolicy.load().plan.isActive(at: .tls)
    }
    tls.receive(bytes) { process(context) }
  }

  /// Reads from the socket without going through the channel.
  ///
  /// - Returns: the number of bytes read; 0 at the end of input or on an error, which NIO's next read reports.
  private func receiveAtOnce(_ room: UnsafeMutableRawBufferPointer, _ context: ChannelHandlerContext) -> Int {
    // An active channel owns its socket. Afterwards the descriptor may belong to another connection.
    guard let socket, context.channel.isActive else { return 0 }
    return max(0, recv(socket, room.baseAddress, room.count, 0))
  }
}

/// Writing of frames: encryption and output to the socket.
extension ConnectionHandler {
  /// The number of bytes of frames written per round, at least, while more are pending.
  private static let writeSize = 64 << 10

  /// Commits the records, then writes the pending responses: a push is readable in the inbox before its response
  /// leaves.
  ///
  /// Frames are created only while the client reads, because frames are what takes memory.
  func flush(_ context: ChannelHandlerContext) {
    guard phase == .open, let session, !isFlushing else { return }
    // A write may complete before the call returns, and the channel then reports that it is writable again.
    isFlushing = true
    var isDrained = false
    while !isDrained, isWritable(context), phase == .open {
      isDrained = writeFrames(of: session, upTo: Self.writeSize, context)
    }
    isFlushing = false
    // For a client that does not read: its pushes are recorded although no response is written yet.
    processor?.commit()
    guard phase == .open else { return }
    if session.isFinished, !isDraining, let goAway = session.goAwaySent, goAway.errorCode != 0 {
      let name = HTTP2ErrorCode.name(of: goAway.errorCode)
      logClientError(.protocolError, "HTTP/2 error \(goAway.errorCode) (\(name)), connection ended: \(goAway.text)")
      log.add(.goAway, "\(name) \(goAway.text)", at: state.clock.now)
    }
    if session.isFinished || (isDraining && !session.hasPendingWork) { close(context) }
  }

  /// Writes pending frames of the session to the socket, after committing the records that belong to them.
  ///
  /// - Returns: whether the session has no more frames to write, or writing failed.
  @discardableResult
  func writeFrames(
    of session: HTTP2ServerSession, upTo limit: Int = .max, _ context: ChannelHandlerContext
  ) -> Bool {
    scratch.output.removeAll(keepingCapacity: true)
    let isDrained = session.drain(into: &scratch.output, upTo: limit)
    // Record streams that end with one of these frames before the frames leave. A response that was dropped is not
    // among the frames, and its push is recorded as aborted.
    handleEvents(of: session, context)
    processor?.commit()
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

  /// Returns whether bytes written now leave at once or are buffered only briefly.
  func isWritable(_ context: ChannelHandlerContext) -> Bool {
    // Skip the query when nothing is buffered: it would cost time for each push.
    writesWaiting == 0 || context.channel.isWritable
  }

  /// Writes bytes directly to the socket as long as it accepts all of them, otherwise through the channel, which
  /// buffers them. Writes go through the channel until its buffer is empty again.
  ///
  /// A write through the channel costs a buffer, a copy and NIO's bookkeeping: where pushes arrive one by one, or
  /// are large, a twentieth of the time per push.
  func put(_ bytes: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) {
    let sent = writesWaiting == 0 ? sendAtOnce(bytes, context) : 0
    guard sent < bytes.count else { return }
    let buffer = context.channel.allocator.buffer(bytes: bytes.dropFirst(sent))
    writesWaiting += 1
    context.writeAndFlush(wrapOutboundOut(buffer)).assumeIsolated().whenComplete { _ in self.writesWaiting -= 1 }
  }

  /// Writes to the socket without going through the channel.
  ///
  /// - Returns: the number of bytes that the socket accepted; 0 on an error, which the channel's next write reports and
  ///   which then ends the connection.
  private func sendAtOnce(_ bytes: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) -> Int {
    // An active channel owns its socket. Afterwards the descriptor may belong to another connection.
    guard let socket, context.channel.isActive else { return 0 }
    #if canImport(Darwin)
      let flags: Int32 = 0  // NIO sets SO_NOSIGPIPE.
    #else
      let flags = Int32(MSG_NOSIGNAL)
    #endif
    return max(0, send(socket, bytes.baseAddress, bytes.count, flags))
  }
}
