import APNSMockFaultModel
import APNSMockFaults
import APNSMockHTTP2Session
import APNSMockInbox
import Logging
import NIOCore
import APNSMockPlatformLibc
import APNSMockTLSEngine

/// Reading from the socket.
extension ConnectionHandler {
  /// The size of the buffer that NIO keeps for each connection. A push that arrives alone usually fits.
  static let firstReadSize = 2 << 10
  /// How often the event loop's buffer is filled before other connections get their turn.
  private static let maxReads = 4

  /// Processes the bytes that NIO read and, if they filled its buffer, reads the rest from the socket directly.
  ///
  /// With NIO alone each busy connection would keep a buffer as large as the most that it received at once. Eight of
  /// these no longer fit into a core's cache, and a thousand would take hundreds of megabytes.
  func receive(_ first: ByteBuffer, _ context: ChannelHandlerContext) {
    let buffer = resources.cipherText
    guard first.writableBytes == 0, first.readableBytes < buffer.count, !stateMachine.isReadingSuspended else {
      return first.withUnsafeReadableBytes { receive($0, context) }
    }
    first.withUnsafeReadableBytes { buffer.copyMemory(from: $0) }
    var filled = first.readableBytes
    for _ in 0..<Self.maxReads {
      filled += readSocket(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]), context)
      guard filled > 0 else { return }
      receive(UnsafeRawBufferPointer(rebasing: buffer[..<filled]), context)
      // If the buffer is not full, the socket is empty. A client that does not read its responses is not read from.
      guard filled == buffer.count, isWritable(context), !stateMachine.isReadingSuspended else { return }
      filled = 0
    }
  }

  /// Processes received bytes. The pointer is valid only during the call.
  private func receive(_ bytes: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) {
    guard let first = bytes.first else { return }
    switch stateMachine.receivedBytes(startingWith: first) {
    case .process: break
    case .startHandshake: transport.tls?.stopsAfterClientHello = state.activePolicy.load().plan.mayInject(at: .tls)
    case .refusePlainText: return refusePlainText(bytes, context)
    case .store: return transport.receive(bytes)
    case .discard: return
    }
    input.lastActivity = .now()
    input.lastReceivedAt = MachineTime.nanoseconds
    input.bytesReceived += bytes.count
    transport.receive(bytes) { handleReceivedBytes(context) }
  }

  /// Reads from the socket without going through the channel.
  ///
  /// - Returns: The number of bytes read; 0 at the end of input or on an error, which NIO's next read reports.
  private func readSocket(into buffer: UnsafeMutableRawBufferPointer, _ context: ChannelHandlerContext) -> Int {
    // An active channel owns its socket. Afterwards the descriptor may belong to another connection.
    guard let socket = output.socket, context.channel.isActive else { return 0 }
    return max(0, recv(socket, buffer.baseAddress, buffer.count, 0))
  }
}

/// Writing of frames: encryption and output to the socket.
extension ConnectionHandler {
  /// The minimum number of bytes of frames to write per round, if that many are pending.
  private static let writeSize = 64 << 10

  /// Commits the records, then writes the pending responses: a push is readable in the inbox before its response
  /// leaves.
  ///
  /// Frames are created only while the client reads, because frames use memory.
  func flush(_ context: ChannelHandlerContext) {
    guard let session, stateMachine.flushStarted() else { return }
    var isComplete = false
    repeat {
      // The pushes of a client that does not read are recorded although no response is written yet.
      isComplete = writeFrames(of: session, upTo: isWritable(context) ? Self.writeSize : 0, context)
    } while !isComplete && isWritable(context) && stateMachine.isOpen
    switch stateMachine.flushCompleted(isFinished: session.isFinished, hasPendingWork: session.hasPendingWork) {
    case .none: checkWindow(of: session, context)
    case .close: close(context)
    case .closeFinishedSession:
      if let goAway = session.goAwaySent, goAway.errorCode != 0 {
        let name = HTTP2ErrorCode.name(of: goAway.errorCode)
        logClientError(.protocolError, "HTTP/2 error \(goAway.errorCode) (\(name)), connection ended: \(goAway.text)")
        log.add(.goAway, "\(name) \(goAway.text)", at: state.clock.now)
      } else {
        // The client has sent GOAWAY, and waits for no response.
        recordClosing(isClient: stateMachine.isCloseByClient)
      }
      close(context)
    }
  }

  /// Writes pending frames of the session to the socket, after committing the records that belong to them.
  ///
  /// - Parameter limit: The minimum number of bytes of frames to write, if that many are pending; 0 to commit only.
  /// - Returns: Whether the session has no more frames to write, or writing failed.
  @discardableResult
  func writeFrames(
    of session: HTTP2ServerSession, upTo limit: Int = .max, _ context: ChannelHandlerContext
  ) -> Bool {
    // A request may end the connection, which writes frames too.
    handleEvents(of: session, context)
    resources.frames.removeAll(keepingCapacity: true)
    let isComplete = limit > 0 && session.appendOutput(to: &resources.frames, upTo: limit)
    // Record streams that end with one of these frames before the frames leave. A response that was dropped is not
    // among the frames, and its push is recorded as aborted.
    commitRecords(of: session, context)
    guard limit > 0 else { return false }
    if let writer = state.inbox.writer, holdFrames(of: session, isComplete, for: writer, context) {
      return isComplete
    }
    guard resources.frames.withUnsafeBytes({ encrypt($0) }) else {
      close(context)
      return true
    }
    writeCipherText(context)
    return isComplete
  }

  /// Encrypts frames, for `writeCipherText`.
  ///
  /// - Returns: Whether they were encrypted. Otherwise the connection has to be closed.
  func encrypt(_ bytes: UnsafeRawBufferPointer) -> Bool {
    do {
      try transport.write(bytes)
      return true
    } catch {
      logger.debug("\(client): \(error)")
      return false
    }
  }

  /// Makes the records of all pushes received so far visible in the inbox.
  func commitRecords(of session: HTTP2ServerSession, _ context: ChannelHandlerContext) {
    handleEvents(of: session, context)
    guard let processor, processor.commit(session), let writer = state.inbox.writer else { return }
    writer.answers.extend(&output.held.prerequisite)
    output.held.mayBeOvertaken = false
  }

  func writeCipherText(_ context: ChannelHandlerContext) {
    transport.takeOutput { put($0, context) }
  }

  /// Returns whether bytes written now leave at once or are buffered only briefly.
  func isWritable(_ context: ChannelHandlerContext) -> Bool {
    // Skip the query when nothing is buffered: it would cost time for each push.
    (output.bufferedWrites == 0 || context.channel.isWritable) && output.held.byteCount <= HeldOutput.limit
  }

  /// Writes bytes directly to the socket as long as it accepts all of them, otherwise through the channel, which
  /// buffers them. Writes go through the channel until its buffer is empty again.
  /// A write through the channel costs a buffer, a copy and NIO's bookkeeping. Measured: 5 % of CPU per push where
  /// pushes arrive one by one or are large (`make bench`).
  func put(_ bytes: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) {
    let sent = output.bufferedWrites == 0 ? writeSocket(bytes, context) : 0
    guard sent < bytes.count else { return }
    let buffer = context.channel.allocator.buffer(bytes: bytes.dropFirst(sent))
    output.bufferedWrites += 1
    context.writeAndFlush(wrapOutboundOut(buffer)).assumeIsolated().whenComplete { _ in self.output.bufferedWrites -= 1
    }
  }

  /// Writes to the socket without going through the channel.
  ///
  /// - Returns: The number of bytes that the socket accepted; 0 on an error, which the channel's next write reports and
  ///   which then ends the connection.
  private func writeSocket(_ bytes: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) -> Int {
    // An active channel owns its socket. Afterwards the descriptor may belong to another connection.
    guard let socket = output.socket, context.channel.isActive else { return 0 }
    #if canImport(Darwin)
      let flags: Int32 = 0  // NIO sets SO_NOSIGPIPE.
    #else
      let flags = Int32(MSG_NOSIGNAL)
    #endif
    return max(0, send(socket, bytes.baseAddress, bytes.count, flags))
  }
}
