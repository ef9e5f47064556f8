import APNSMockRules
import APNSMockHTTP2Session
import APNSMockInbox
import Logging
import NIOCore
import APNSMockTLSEngine

/// Protection against clients that flood, stall or stay idle.
extension ConnectionHandler {
  /// The number of bytes a connection may send without a request.
  private static let freeBytes = 1 << 20
  /// The number of bytes allowed for each byte of a request. nginx has used the same two limits since the HTTP/2
  /// floods of 2019 (CVE-2019-9511 to 9518). Frames that nghttp2 ignores silently, and TLS records without content,
  /// count as well.
  private static let bytesPerRequestByte = 8

  /// Returns the reason to close the connection if the client sends mostly something other than requests (PING,
  /// PRIORITY, empty DATA, unknown frames), or updates its TLS keys far more often than necessary.
  func floodCloseReason(_ session: HTTP2ServerSession) -> ConnectionCloseReason? {
    // AES-GCM needs a new key after 2^24.5 records (RFC 8446 section 5.5); one per 64 KiB, plus 32, are allowed.
    if let updates = transport.tls?.keyUpdates, updates > 32 + input.bytesReceived >> 16 {
      return .keyUpdates(updates)
    }
    if input.bytesReceived / Self.bytesPerRequestByte > session.requestByteCount + Self.freeBytes {
      return .flood(bytes: input.bytesReceived, ofRequests: session.requestByteCount)
    }
    return nil
  }

  /// The time without input after which a connection with an exhausted flow-control window is closed. Shorter than the
  /// ten seconds after which aioapns, which never sends WINDOW_UPDATE, closes it.
  private static let windowTimeout = TimeAmount.seconds(5)

  /// Notes whether responses wait for the client to open its flow-control window, and if so, checks the connection
  /// sooner.
  func checkWindow(of session: HTTP2ServerSession, _ context: ChannelHandlerContext) {
    let isExhausted = session.responsesAwaitingWindow > 0
    guard isExhausted != input.isWindowExhausted else { return }
    input.isWindowExhausted = isExhausted
    if isExhausted { scheduleIdleCheck(context) }
  }

  /// Closes the connection if the client has not opened its flow-control window in time.
  private func closeIfWindowStaysExhausted(_ context: ChannelHandlerContext) {
    guard let session, let processor, input.isWindowExhausted, output.held.parts.isEmpty,
      NIODeadline.now() - input.lastActivity >= Self.windowTimeout
    else { return }
    let responses = session.responsesAwaitingWindow
    // Before the GOAWAY, which drops the streams.
    state.inbox.addExhaustedWindow(of: processor.connection, responses: responses)
    input.isWindowExhausted = false
    sendGoAwayAndClose(context, .windowNeverOpened(responses: responses))
  }

  /// Schedules the next check of the connection: in ten seconds, or when a timeout expires if that is sooner.
  func scheduleIdleCheck(_ context: ChannelHandlerContext) {
    let limit = TimeAmount(apnsSettings.idleTimeout)
    let idleTime = NIODeadline.now() - input.lastActivity
    let interval = input.isWindowExhausted ? Self.windowTimeout : TimeAmount(HTTP2Limits.overdueCheckInterval)
    schedule(.idleCheck, after: min(interval, idleTime < limit ? limit - idleTime : limit), context) {
      handler, context in
      guard handler.stateMachine.state == .open(.serving) else { return }
      handler.closeIfWindowStaysExhausted(context)
      guard handler.stateMachine.state == .open(.serving) else { return }
      if NIODeadline.now() - handler.input.lastActivity >= limit {
        return handler.sendGoAwayAndClose(context, .idle)
      }
      if NIODeadline.now() - handler.input.lastCheck >= TimeAmount(HTTP2Limits.overdueCheckInterval) {
        handler.resetOverdueStreams(context)
      }
      if handler.stateMachine.state == .open(.serving) { handler.scheduleIdleCheck(context) }
    }
  }

  private func resetOverdueStreams(_ context: ChannelHandlerContext) {
    guard let session else { return }
    if input.lastActivity < input.lastCheck { transport.releaseBuffers() }
    input.lastCheck = .now()
    input.stalledChecks = context.channel.isWritable ? 0 : input.stalledChecks + 1
    if input.stalledChecks > HTTP2Limits.maxOverdueChecks {
      logClientError(.slowness, "does not read its responses, closed")
      hasClosedSocket = true
      return context.close(promise: nil)
    }
    // While the channel is not writable, all responses wait for the client, so no single stream is overdue.
    guard context.channel.isWritable, output.held.parts.isEmpty else { return }
    do {
      let overdue = try session.endOverdueStreams()
      guard !overdue.isEmpty else { return }
      for stream in overdue where stream.isEndedByServer { logReset(stream, .cancel) }
      flush(context)
    } catch let failure as HTTP2Failure {
      refuse(failure, context)
    } catch {
      context.close(promise: nil)
    }
  }

  /// Logs that a stream was reset: the first one of a connection as a client error, further ones at the level debug.
  func logReset(_ stream: RequestStream, _ code: HTTP2ErrorCode) {
    let cause =
      !stream.isOverdue
      ? "its request is not valid HTTP/2" + (stream.violation.map { ": \($0)" } ?? "")
      : stream.isEndedByServer ? "its response is not read" : "its request is incomplete"
    let message = "stream \(stream.id) reset with \(code.name): \(cause)"
    if hasLoggedReset {
      logger.debug("\(client): \(message)")
    } else {
      logClientError(
        stream.isOverdue ? .slowness : .protocolError,
        "\(message); further ones on this connection are logged at level debug")
    }
    hasLoggedReset = true
  }

  /// Logs a client error. Recurring errors of one client address are logged at the level debug.
  func logClientError(_ kind: ClientErrorLog.Kind, _ message: String) {
    state.clientErrorLog.log(kind, message, of: log, to: logger)
  }
}
