import APNSMockFaultModel
import APNSMockFaults
import APNSMockHTTPMessage
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
      guard filled == buffer.count, stateMachine.readsInput else { return }
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
    stateMachine.input.received(byteCount: bytes.count, at: .now(), machineTime: MachineTime.nanoseconds)
    transport.receive(bytes) { handleReceivedBytes(context) }
  }

  /// Reads from the socket without going through the channel.
  ///
  /// - Returns: The number of bytes read; 0 at the end of input or on an error, which NIO's next read reports.
  private func readSocket(into buffer: UnsafeMutableRawBufferPointer, _ context: ChannelHandlerContext) -> Int {
    // An active channel owns its socket. Afterwards the descriptor may belong to another connection.
    guard let socket, context.channel.isActive else { return 0 }
    return max(0, recv(socket, buffer.baseAddress, buffer.count, 0))
  }

  // MARK: - Bytes to events

  /// Processes the bytes that `transport` holds, and writes what follows from them.
  func handleReceivedBytes(_ context: ChannelHandlerContext) {
    let wasHandshaking = stateMachine.state == .handshaking
    do {
      while stateMachine.state == .handshaking {
        switch try transport.handshake() {
        case .waiting: return writeCipherText(context)
        case .clientHelloReceived: guard try applyTLSFaults(context) else { return updateReading(context) }
        case .done: try open(context)
        }
      }
      if stateMachine.isOpen { try receiveFrames(context) }
      if wasHandshaking { transport.releaseBuffers() }
    } catch let failure as HTTP2Failure {
      refuse(failure, context)
    } catch {
      let isHandshaking = stateMachine.state == .handshaking
      logClientError(isHandshaking ? .handshake : .protocolError, "\(error)\(handshakeAdvice(for: "\(error)"))")
      if isHandshaking {
        log.add(.handshake, "\(error)", at: state.clock.now)
        state.connections.countHandshake(isDone: false)
      }
      writeCipherText(context)
      close(context)
    }
    writeFrames(context)
  }

  private func receiveFrames(_ context: ChannelHandlerContext) throws {
    guard let session else { return }
    while stateMachine.isOpen {
      switch try transport.read(into: resources.plainText) {
      case .bytes(let count):
        let bytes = UnsafeRawBufferPointer(rebasing: resources.plainText[..<count])
        stateMachine.input.decrypted(bytes)
        try session.receive(bytes)
        handleEvents(of: session, context)
        if processor?.faultScope.hasConnectionRules == true { evaluateConnectionRules(context) }
      case .waiting:
        let flood = stateMachine.input.floodCloseReason(
          requestBytes: session.requestByteCount, keyUpdates: transport.tls?.keyUpdates ?? 0)
        if let flood {
          sendGoAwayAndClose(flood, context)
          close(context)
        }
        return
      case .closed:
        recordClosing(isClient: stateMachine.isCloseByClient, isOrderly: true)
        writeFrames(context)
        return close(context)
      }
    }
  }

  /// Handles the events of the session. They change the state and what the session has to send, and write nothing.
  private func handleEvents(of session: HTTP2ServerSession, _ context: ChannelHandlerContext) {
    guard session.hasEvents, let processor else { return }
    let policy = processor.beginBatch()
    while let event = session.nextEvent() {
      switch event {
      case .request(let stream):
        switch stateMachine.requestReceived(on: stream.id) {
        case .process:
          processor.process(stream, under: policy, stateMachine.processedStreams, session: session)
          if !processor.connectionActions.isEmpty { performPendingActions(context) }
        case .recordAsUnprocessed: processor.recordUnprocessed(stream, stateMachine.processedStreams)
        }
      case .aborted(let stream):
        processor.recordUnfinished(
          stream, stream.violation != nil ? .malformed : session.hasExcluded(stream) ? .refused : .cancelled)
      case .cancelled(let stream):
        processor.endWithoutResponse(
          on: stream, session.hasExcluded(stream) ? .refused : stream.resetSent == nil ? .cancelled : .reset,
          reset: stream.resetSent)
        faultTimers.cancel(.delayedPush(stream.request.stream))
      case .reset(let stream, let code):
        if !stream.isRefused { logReset(stream, code) }
        processor.recordUnfinished(
          stream, stream.violation != nil ? .malformed : code == .refusedStream ? .refused : .reset, reset: code)
        log.add(.reset, "stream=\(stream.request.stream) \(code.name)", at: state.clock.now)
      case .responseSent(let id):
        processor.endAttempt(on: id, .response)
      case .responseDropped(let stream):
        processor.goAway = processor.goAway ?? session.goAwaySent.map(WireDetails.GoAway.init)
        processor.endWithoutResponse(on: stream, session.hasExcluded(stream) ? .refused : .disconnected)
      case .excessStreams(let stream, let limit):
        processor.excess = (stream, limit)
        sendGoAwayAndClose(.excessStreams(limit: limit), context)
      case .goAway(let code):
        logger.debug("\(client): sent GOAWAY with code \(code)")
      }
    }
  }
}

/// Writing of frames: encryption and output to the socket.
extension ConnectionHandler {
  /// Handles the session's events, commits the records and writes frames, round by round, until the client accepts no
  /// more; then closes, resets or silences the connection if that is due. A push is readable in the inbox before its
  /// response leaves. Does nothing if it is called within itself: the outer call writes another round.
  func writeFrames(_ context: ChannelHandlerContext) {
    if let session, stateMachine.writingStarted() {
      var action = ConnectionStateMachine.WriteAction.writeAgain
      while action == .writeAgain { action = writeRound(of: session, context) }
      perform(action, session, context)
    }
    updateReading(context)
  }

  private func writeRound(
    of session: HTTP2ServerSession, _ context: ChannelHandlerContext
  ) -> ConnectionStateMachine.WriteAction {
    handleEvents(of: session, context)
    let limit = stateMachine.roundLimit
    resources.frames.removeAll(keepingCapacity: true)
    let isComplete = limit > 0 && session.appendOutput(to: &resources.frames, upTo: limit)
    // Record streams that end with one of these frames before the frames leave. A response that was dropped is not
    // among the frames, and its push is recorded as aborted. The pushes of a client that does not read are recorded
    // although no response is written yet.
    commitRecords(of: session, context)
    if limit > 0, !holdFrames(of: session, isComplete: isComplete, context) {
      guard resources.frames.withUnsafeBytes({ encrypt($0) }) else { return stateMachine.writingFailed() }
      writeCipherText(context)
    }
    return stateMachine.roundWritten(
      isComplete: isComplete, isFinished: session.isFinished,
      hasPendingWork: session.hasPendingWork || processor?.awaitsUpstream == true)
  }

  private func perform(
    _ action: ConnectionStateMachine.WriteAction, _ session: HTTP2ServerSession, _ context: ChannelHandlerContext
  ) {
    switch action {
    case .none, .writeAgain:
      let isExhausted = session.responsesAwaitingWindow > 0
      if stateMachine.input.framesWritten(isWindowExhausted: isExhausted), stateMachine.isOpen {
        scheduleIdleCheck(context)
      }
    case .close: finishClosing(context)
    case .closeFinishedSession(let isByClient):
      if let goAway = session.goAwaySent, goAway.errorCode != 0 {
        let name = HTTP2ErrorCode.name(of: goAway.errorCode)
        logClientError(.protocolError, "HTTP/2 error \(goAway.errorCode) (\(name)), connection ended: \(goAway.text)")
        log.add(.goAway, "\(name) \(goAway.text)", at: state.clock.now)
      } else {
        // The client has sent GOAWAY, and waits for no response.
        recordClosing(isClient: isByClient)
      }
      finishClosing(context)
    case .reset: reset(context)
    case .silence:
      transport.releaseBuffers()
      // A shutdown in progress still ends the connection.
      cancelTimer(through: .idleCheck)
    }
  }

  /// Starts or stops reading from the socket.
  func updateReading(_ context: ChannelHandlerContext) {
    guard let reads = stateMachine.readingChange() else { return }
    _ = context.channel.setOption(ChannelOptions.autoRead, value: reads)
  }

  /// Encrypts frames, for `writeCipherText`.
  ///
  /// - Returns: Whether they were encrypted. Otherwise the connection has to be closed.
  private func encrypt(_ bytes: UnsafeRawBufferPointer) -> Bool {
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
    guard let processor else { return }
    let hasCommitted = processor.commit(session)
    if !processor.forwards.isEmpty { forwardPushes(of: processor, context) }
    guard hasCommitted, let writer = state.inbox.writer else { return }
    stateMachine.heldFrames.extend(by: writer.answers)
  }

  func writeCipherText(_ context: ChannelHandlerContext) {
    transport.takeOutput { put($0, context) }
  }

  /// Writes bytes directly to the socket as long as it accepts all of them, otherwise through the channel, which
  /// buffers them. Writes go through the channel until its buffer is empty again.
  /// A write through the channel costs a buffer, a copy and NIO's bookkeeping. Measured: 5 % of CPU per push where
  /// pushes arrive one by one or are large (`make bench`).
  func put(_ bytes: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) {
    let sent = stateMachine.writesDirectly ? writeSocket(bytes, context) : 0
    guard sent < bytes.count else { return }
    let buffer = context.channel.allocator.buffer(bytes: bytes.dropFirst(sent))
    stateMachine.writeBuffered()
    context.writeAndFlush(wrapOutboundOut(buffer)).assumeIsolated().whenComplete { _ in
      self.stateMachine.bufferedWriteEnded()
    }
  }

  /// Writes to the socket without going through the channel.
  ///
  /// - Returns: The number of bytes that the socket accepted; 0 on an error, which the channel's next write reports and
  ///   which then ends the connection.
  private func writeSocket(_ bytes: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) -> Int {
    // An active channel owns its socket. Afterwards the descriptor may belong to another connection.
    guard let socket, context.channel.isActive else { return 0 }
    #if canImport(Darwin)
      let flags: Int32 = 0  // NIO sets SO_NOSIGPIPE.
    #else
      let flags = Int32(MSG_NOSIGNAL)
    #endif
    return max(0, send(socket, bytes.baseAddress, bytes.count, flags))
  }

  // MARK: - Frames that wait for the store

  /// Keeps the new frames back if they have to wait for the store.
  ///
  /// - Returns: Whether they are kept.
  private func holdFrames(of session: HTTP2ServerSession, isComplete: Bool, _ context: ChannelHandlerContext) -> Bool {
    guard let writer = state.inbox.writer else { return false }
    let facts = HeldFrames.Facts(
      isComplete: isComplete, hasSentFields: session.hasSentFields,
      isOrdered: session.hasPendingResponses || session.hasSentContinue)
    switch stateMachine.heldFrames.place(resources.frames, facts, for: writer) {
    case .write: return false
    case .hold:
      awaitStore(writer, context)
      return true
    }
  }

  private func awaitStore(_ writer: RecordWriter, _ context: ChannelHandlerContext) {
    guard let prerequisite = stateMachine.heldFrames.beginWait() else { return }
    // Handler and context belong to this event loop and the task runs on it; `NIOLoopBound` checks this.
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let eventLoop = context.eventLoop
    writer.answers.whenMet(prerequisite) {
      eventLoop.execute { bound.value.0.releaseFrames(writer, bound.value.1) }
    }
  }

  private func releaseFrames(_ writer: RecordWriter, _ context: ChannelHandlerContext) {
    stateMachine.heldFrames.waitEnded()
    while let frames = stateMachine.heldFrames.removeFirst(ifMetBy: writer.answers) {
      guard frames.withUnsafeReadableBytes({ encrypt($0) }) else {
        if stateMachine.writingFailed() == .close { finishClosing(context) }
        break
      }
      writeCipherText(context)
    }
    awaitStore(writer, context)
    if stateMachine.heldFramesReleased(now: .now(), hasSentFields: session?.hasSentFields ?? true) {
      return closeTransport(context)
    }
    writeFrames(context)
  }
}
