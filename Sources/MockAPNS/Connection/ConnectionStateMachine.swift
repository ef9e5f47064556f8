internal import APNSMockNotation
import APNSMockFaultModel

/// The state of a provider connection: decides what each event leads to. Performs no I/O: `ConnectionHandler` reports
/// the events and performs the returned actions.
struct ConnectionStateMachine {
  enum State: Equatable {
    /// Nothing received yet. The first byte distinguishes TLS from plain text.
    case awaitingFirstByte
    case handshaking
    /// A fault delays the rest of the TLS handshake. Nothing is read.
    case handshakeDelayed
    /// The handshake is complete, but a fault delays the first SETTINGS frame. Nothing is read.
    case settingsDelayed
    case open(Stage)
    /// A fault silences the connection: nothing is sent, received bytes are discarded.
    case silenced
    /// The last bytes are written; received bytes are discarded.
    case closing
  }

  /// The stage of an open connection.
  enum Stage: Equatable {
    case serving
    /// GOAWAY was sent: the connection closes after its last open stream.
    case draining
    /// Responses already submitted are written, further requests are not processed, then the connection closes.
    case ending
  }

  /// The purpose of the connection's timer. At most one is scheduled: a later purpose in this list replaces an earlier
  /// one, never the reverse.
  enum TimerPurpose: UInt8, CaseIterable {
    /// Closes the connection if the TLS handshake is not complete.
    case handshakeTimeout
    /// Checks an open connection for idleness and for a stalled client.
    case idleCheck
    /// Sends the second GOAWAY of a shutdown.
    case shutdownNotice
    /// Closes the connection although streams are still open after GOAWAY.
    case drainTimeout
    /// Closes the socket if the client has not closed it after the last bytes.
    case lingerTimeout
  }

  private(set) var state: State
  /// The streams that are processed, limited by the GOAWAY frames sent.
  private(set) var processedStreams = ProcessedStreams()
  /// The purpose of the scheduled timer; nil if none is scheduled.
  private(set) var timer: TimerPurpose?
  private var isFlushing = false

  init(state: State = .awaitingFirstByte) {
    self.state = state
  }

  /// Whether HTTP/2 frames are exchanged.
  var isOpen: Bool {
    if case .open = state { true } else { false }
  }

  /// Whether a fault suspends reading, so that the client's bytes wait in the socket.
  var isReadingSuspended: Bool { state == .settingsDelayed || state == .handshakeDelayed }

  // MARK: - Opening

  enum InputAction: Equatable {
    case process
    case startHandshake
    case refusePlainText
    /// Keep the bytes for later: they had already been read when reading was suspended.
    case store
    case discard
  }

  /// Bytes were received on the socket.
  mutating func receivedBytes(startingWith first: UInt8) -> InputAction {
    switch state {
    case .open, .handshaking: return .process
    case .settingsDelayed: return .store
    case .handshakeDelayed, .silenced, .closing: return .discard
    case .awaitingFirstByte:
      // A TLS handshake record begins with 22, an HTTP method or the HTTP/2 preface with a letter.
      if (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(first & ~0x20) {
        state = .closing
        return .refusePlainText
      }
      state = .handshaking
      return .startHandshake
    }
  }

  /// A fault delays the rest of the TLS handshake.
  mutating func faultDelaysHandshake() { state = .handshakeDelayed }

  /// Returns whether the handshake continues.
  mutating func handshakeDelayElapsed() -> Bool {
    guard state == .handshakeDelayed else { return false }
    state = .handshaking
    return true
  }

  /// The TLS handshake is complete.
  mutating func handshakeCompleted(delaysSettings: Bool) {
    state = delaysSettings ? .settingsDelayed : .open(.serving)
  }

  /// Returns whether the first SETTINGS frame is sent now.
  mutating func settingsDelayElapsed() -> Bool {
    guard state == .settingsDelayed else { return false }
    state = .open(.serving)
    return true
  }

  // MARK: - Requests

  enum RequestAction: Equatable {
    case process
    /// A GOAWAY excluded its stream, or the connection was ended before the request.
    case recordAsUnprocessed
  }

  /// A complete request was received.
  mutating func requestReceived(on stream: Int32) -> RequestAction {
    switch state {
    case _ where stream > processedStreams.lastAccepted: return .recordAsUnprocessed
    case .open(.serving), .open(.draining):
      processedStreams.didProcess(stream)
      return .process
    default: return .recordAsUnprocessed
    }
  }

  // MARK: - Flushing

  enum FlushAction: Equatable {
    case none
    case close
    /// The HTTP/2 session ended by itself, with a GOAWAY that reports a violation by the client if it carries an error.
    case closeFinishedSession
  }

  /// Returns whether to write pending frames: only on an open connection, and not while an outer call writes them.
  mutating func flushStarted() -> Bool {
    guard isOpen, !isFlushing else { return false }
    isFlushing = true
    return true
  }

  /// The frames that the client accepts at present are written.
  ///
  /// - Parameters:
  ///   - isFinished: Whether the HTTP/2 session neither sends nor receives any more.
  ///   - hasPendingWork: Whether streams remain that a draining connection waits for.
  mutating func flushCompleted(
    isFinished: @autoclosure () -> Bool, hasPendingWork: @autoclosure () -> Bool
  ) -> FlushAction {
    isFlushing = false
    switch state {
    case .open(.serving): return isFinished() ? .closeFinishedSession : .none
    case .open(.draining): return isFinished() || !hasPendingWork() ? .close : .none
    // The code that ends the connection closes it after this flush.
    default: return .none
    }
  }

  // MARK: - Closing

  enum ShutdownAction: Equatable {
    case none
    case close
    /// Send the first of two GOAWAY frames, unless a fault's GOAWAY has already named a lower stream.
    case announceShutdown(sendsGoAway: Bool)
  }

  /// The server shuts down.
  func shutdownRequested() -> ShutdownAction {
    switch state {
    case .open(.serving): .announceShutdown(sendsGoAway: processedStreams.lastAccepted == .max)
    case .open: .none
    default: .close
    }
  }

  enum GoAwayAction: Equatable {
    case none
    case sendAndDrain(lastStream: Int32)
    case sendAndClose(lastStream: Int32)
  }

  /// The server ends the connection with GOAWAY.
  ///
  /// - Parameters:
  ///   - immediately: Whether requests that are not processed yet are dropped.
  ///   - lastReceivedStream: The highest stream that the client has opened.
  ///   - now: Monotonic nanoseconds.
  mutating func goAwayRequested(immediately: Bool, lastReceivedStream: Int32, now: MonotonicTime) -> GoAwayAction {
    guard state == .open(.serving) else { return .none }
    if immediately {
      state = .open(.ending)
      // The client may send the other pushes again (RFC 9113 section 6.8).
      let last = min(processedStreams.highestProcessed, processedStreams.lastAccepted)
      processedStreams.exclude(after: last, at: now)
      return .sendAndClose(lastStream: last)
    }
    state = .open(.draining)
    let last = min(lastReceivedStream, processedStreams.lastAccepted)
    processedStreams.exclude(after: last, at: now)
    return .sendAndDrain(lastStream: last)
  }

  /// A fault's GOAWAY was sent. The connection stays open.
  ///
  /// - Parameter now: Monotonic nanoseconds.
  mutating func faultSentGoAway(lastStream: Int32, now: MonotonicTime) {
    processedStreams.exclude(after: lastStream, at: now)
  }

  /// A fault ends the connection once the submitted responses are written.
  mutating func faultEndsConnection() {
    switch state {
    case .open(.serving), .open(.draining): state = .open(.ending)
    default: break
    }
  }

  /// A fault silences the connection.
  mutating func faultSilences() { state = .silenced }

  /// Whether it is the client's own decision if the client closes the connection now: the server has sent no GOAWAY.
  var isCloseByClient: Bool { state == .open(.serving) && processedStreams.lastAccepted == .max }

  enum CloseAction: Equatable {
    case none
    case close(writesFrames: Bool)
  }

  /// The server closes the connection.
  mutating func closeRequested() -> CloseAction {
    if case .closing = state { return .none }
    let wasOpen = isOpen
    enterClosing()
    return .close(writesFrames: wasOpen)
  }

  /// The server closes the connection without any further TLS or HTTP/2 message, or after a last one.
  mutating func closedAbruptly() { enterClosing() }

  /// What to record of a connection whose socket was closed.
  struct ClosedAction: Equatable {
    var handshakeFailed: Bool
    var isInitiatedByClient: Bool
  }

  /// The socket was closed by either side.
  mutating func socketClosed() -> ClosedAction {
    let action = ClosedAction(handshakeFailed: state == .handshaking, isInitiatedByClient: isCloseByClient)
    enterClosing()
    return action
  }

  private mutating func enterClosing() { state = .closing }

  // MARK: - Timer

  /// Returns whether to schedule the timer, replacing one that is scheduled.
  mutating func timerRequested(_ purpose: TimerPurpose) -> Bool {
    if let timer, timer.rawValue > purpose.rawValue { return false }
    timer = purpose
    return true
  }

  /// Returns whether to cancel the scheduled timer: if its purpose is at most `last`.
  mutating func timerCancelled(through last: TimerPurpose) -> Bool {
    guard let timer, timer.rawValue <= last.rawValue else { return false }
    self.timer = nil
    return true
  }

  /// The timer elapsed.
  mutating func timerElapsed() { timer = nil }
}

/// The streams of a connection that are processed: those that no GOAWAY frame excluded.
struct ProcessedStreams: Equatable {
  /// What a GOAWAY frame is sent for.
  enum GoAwayCause {
    /// A push on this stream.
    case push(Int32)
    /// Something else; the client has opened the streams up to this one.
    case connection(lastReceivedStream: Int32)
  }

  /// The lowest last stream of all GOAWAY frames sent: later streams are not processed.
  private(set) var lastAccepted = Int32.max
  /// When `lastAccepted` was last lowered, in monotonic nanoseconds.
  private(set) var loweredAt: MonotonicTime = 0
  /// The highest stream whose request was processed.
  private(set) var highestProcessed: Int32 = 0

  /// Records that a request is processed.
  mutating func didProcess(_ stream: Int32) { highestProcessed = max(highestProcessed, stream) }

  /// Records that a GOAWAY with this last stream is sent. The last stream never rises again.
  mutating func exclude(after stream: Int32, at now: MonotonicTime) {
    guard stream < lastAccepted else { return }
    lastAccepted = stream
    loweredAt = now
  }

  /// Returns whether requests on later streams were processed before the one on this stream, which can happen when it
  /// was delayed. A GOAWAY then has to include those streams too, and this one is refused with its own RST_STREAM.
  func isOvertaken(_ stream: Int32) -> Bool { highestProcessed > stream }

  /// Returns the last stream that a fault's GOAWAY names. A later GOAWAY never names a higher stream (RFC 9113 section
  /// 6.8).
  func lastStream(of goAway: Action.GoAwayParameters, causedBy cause: GoAwayCause) -> Int32 {
    let wanted: Int32 =
      switch (goAway.lastStream, cause) {
      case (.all, _): .max
      case (_, .connection(let lastReceivedStream)): lastReceivedStream
      case (.beforeThis, .push(let stream)): isOvertaken(stream) ? highestProcessed : max(0, stream - 2)
      case (.this, .push(let stream)): max(stream, highestProcessed)
      }
    return min(wanted, lastAccepted)
  }
}
