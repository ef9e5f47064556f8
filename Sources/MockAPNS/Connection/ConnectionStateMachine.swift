internal import APNSMockNotation
import NIOCore

/// The state of a provider connection: decides what each event leads to. Performs no I/O and reads no clock:
/// `ConnectionHandler` reports each event by one call and performs the returned actions.
///
/// ```
///      awaitingFirstByte ──▶ handshaking ◀──▶ handshakeDelayed
///                                 │
///            settingsDelayed ◀────┤
///                   └─────────▶ open(serving ──▶ draining) ──▶ ending ──▶ silenced
///                                                                 │           │
///                                    closing ◀── closingAfterHeldFrames ◀─────┘
/// ```
///
/// Invariants, on which the handler relies:
///
/// 1. The state changes only along these arrows, or from any state to `closing`, which is never left.
/// 2. Frames are received in `open` only, and written in `open` and `ending` only.
/// 3. Frames are written in one loop, `ConnectionHandler.writeFrames`, which is never entered twice: `isWriting` is set
///    from `writingStarted` until `roundWritten` returns something other than `writeAgain`. An event inside a round, such
///    as a request or a full socket, only changes the state; the next round acts on it.
/// 4. `ending` lasts until the end of that loop: no event of the event loop finds the connection in this state.
/// 5. A request is processed if the connection serves or drains, or is about to be silenced, and no GOAWAY excluded its
///    stream. The last stream of GOAWAY never rises.
/// 6. Attempts end once: by the event that leaves `open`, `ending` or `silenced` for one of the closing states.
/// 7. If frames wait for the store, all later frames wait behind them, except for those that `HeldFrames.place` lets
///    pass. The socket's output ends only when none wait.
/// 8. The socket is read unless a fault delays the handshake or SETTINGS, the channel buffers output that the client does
///    not read, or too much output waits for the store (`readsInput`).
/// 9. At most one timer with a `TimerPurpose` is scheduled, and any number of those of faults (`FaultTimer`).
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
    /// Responses already submitted are written, then the connection ends.
    case ending(Ending)
    /// A fault silences the connection: nothing is sent, received bytes are discarded.
    case silenced
    /// The last frames wait for the store; received bytes are discarded.
    case closingAfterHeldFrames
    /// The last bytes are written; received bytes are discarded.
    case closing
  }

  /// The stage of an open connection.
  enum Stage: Equatable {
    case serving
    /// GOAWAY was sent: the connection closes after its last open stream.
    case draining
  }

  /// How a connection ends once the submitted responses are written.
  enum Ending: Equatable {
    /// With close_notify and FIN. All frames are written, even if the client does not read.
    case close
    /// With RST.
    case reset
    /// Without a sign. The requests that were received until then are processed.
    case silence
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
  private var isWriting = false
  /// What the client has sent, and whether it reads.
  var input = ConnectionInput()
  /// The frames that wait for the store.
  var heldFrames = HeldFrames()
  /// The number of writes that the channel buffers because the socket did not accept them.
  private var bufferedWrites = 0
  /// Whether the channel buffers less than its limit.
  private var isChannelWritable = true
  /// Whether the socket was read when `readingChange` was last called.
  private var isReading = true
  /// The faults that last for a time.
  var faultEffects = FaultEffects()
  /// Whether a rule replaced the server's certificate with one that no client may accept.
  private(set) var showsDefectiveCertificate = false
  private var hasReportedReset = false
  /// What is known of the end of the connection.
  var end = ConnectionEndReport()

  init(state: State = .awaitingFirstByte) {
    self.state = state
  }

  /// Whether HTTP/2 frames are exchanged.
  var isOpen: Bool {
    if case .open = state { true } else { false }
  }

  /// Whether the server writes nothing more than what waits for the store.
  private var isClosing: Bool { state == .closing || state == .closingAfterHeldFrames }

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
    case .handshakeDelayed, .ending, .silenced, .closingAfterHeldFrames, .closing: return .discard
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

  /// The server shows a certificate that no client may accept.
  mutating func faultReplacesCertificate() { showsDefectiveCertificate = true }

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
    case .open, .ending(.silence):
      processedStreams.didProcess(stream)
      return .process
    default: return .recordAsUnprocessed
    }
  }

  /// A stream was reset because of the client. Returns whether it is the first one of the connection.
  mutating func streamReset() -> Bool {
    defer { hasReportedReset = true }
    return !hasReportedReset
  }

  // MARK: - Reading

  /// Whether the socket is read.
  var readsInput: Bool {
    isChannelWritable && !isReadingSuspended && heldFrames.byteCount <= HeldFrames.limit
  }

  /// Whether a fault suspends reading, so that the client's bytes wait in the socket.
  var isReadingSuspended: Bool { state == .settingsDelayed || state == .handshakeDelayed }

  /// Returns whether reading starts (true) or stops (false) now; nil if nothing changes.
  mutating func readingChange() -> Bool? {
    let readsInput = readsInput
    guard readsInput != isReading else { return nil }
    isReading = readsInput
    return readsInput
  }

  /// The channel's buffer exceeds its limit, or does not any more.
  mutating func writabilityChanged(_ isWritable: Bool) {
    isChannelWritable = isWritable
    if isWritable { input.clientReads() }
  }

  // MARK: - Writing

  /// Whether bytes may be passed to the socket without the channel, because the channel buffers none.
  var writesDirectly: Bool { bufferedWrites == 0 }

  /// Whether bytes written now leave at once or are buffered only briefly.
  var isWritable: Bool { isChannelWritable && heldFrames.byteCount <= HeldFrames.limit }

  /// A write is buffered by the channel.
  mutating func writeBuffered() { bufferedWrites += 1 }

  /// A buffered write has ended.
  mutating func bufferedWriteEnded() { bufferedWrites -= 1 }

  /// The minimum number of bytes of frames to write per round, if that many are pending.
  private static let roundSize = 64 << 10

  /// Returns whether to start the loop that writes frames: not within it, and only if frames may be written.
  mutating func writingStarted() -> Bool {
    guard !isWriting, exchangesFrames else { return false }
    isWriting = true
    return true
  }

  private var exchangesFrames: Bool {
    switch state {
    case .open, .ending: true
    default: false
    }
  }

  /// The number of bytes of frames to write in this round; 0 to commit records only. Frames are created only while the
  /// client reads, because frames use memory. At the end there is no later opportunity.
  var roundLimit: Int { state == .ending(.close) ? .max : isWritable ? Self.roundSize : 0 }

  enum WriteAction: Equatable {
    case none
    /// Write another round.
    case writeAgain
    /// Close the connection: its last frames are written or wait for the store.
    case close
    /// The same, after the HTTP/2 session ended by itself, with a GOAWAY that reports a violation by the client if it
    /// carries an error.
    case closeFinishedSession(byClient: Bool)
    case reset
    /// Send nothing more.
    case silence
  }

  /// A round of frames was written.
  ///
  /// - Parameters:
  ///   - isComplete: Whether the session has no more frames.
  ///   - isFinished: Whether the HTTP/2 session neither sends nor receives any more.
  ///   - hasPendingWork: Whether streams remain that a draining connection waits for.
  mutating func roundWritten(
    isComplete: Bool, isFinished: @autoclosure () -> Bool, hasPendingWork: @autoclosure () -> Bool
  ) -> WriteAction {
    if !isComplete, exchangesFrames, roundLimit > 0 { return .writeAgain }
    switch state {
    case .open(.serving) where isFinished():
      let isByClient = isCloseByClient
      return endWriting(.closeFinishedSession(byClient: isByClient), then: closingState)
    case .open(.draining) where isFinished() || !hasPendingWork():
      // Once more, for frames that the client does not read yet.
      state = .ending(.close)
      return .writeAgain
    case .ending(.close): return endWriting(.close, then: closingState)
    case .ending(.reset): return endWriting(.reset, then: state)
    case .ending(.silence): return endWriting(.silence, then: .silenced)
    default: return endWriting(.none, then: state)
    }
  }

  /// Frames could not be encrypted: no more are written.
  mutating func writingFailed() -> WriteAction {
    heldFrames.removeAll()
    return isClosing ? endWriting(.none, then: state) : endWriting(.close, then: .closing)
  }

  private mutating func endWriting(_ action: WriteAction, then next: State) -> WriteAction {
    isWriting = false
    state = next
    return action
  }

  private var closingState: State { heldFrames.isEmpty ? .closing : .closingAfterHeldFrames }

  /// Returns whether the output ends now, because no frames wait for the store any more.
  mutating func heldFramesReleased(now: NIODeadline, hasSentFields: Bool) -> Bool {
    if heldFrames.isEmpty { heldFrames.hasSentFields = hasSentFields }
    // The client could not open its flow-control window for what it had not received.
    input.lastActivity = now
    guard state == .closingAfterHeldFrames, heldFrames.isEmpty else { return false }
    state = .closing
    return true
  }

  /// It is time to check whether the connection is idle or its client stalls.
  mutating func checkElapsed(idleTimeout: TimeAmount, now: NIODeadline) -> ConnectionInput.CheckAction {
    input.checkElapsed(
      idleTimeout: idleTimeout, isWritable: isChannelWritable, holdsFrames: !heldFrames.isEmpty, now: now)
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
    case .open, .ending: .none
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
      state = .ending(.close)
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
  mutating func faultEndsConnection(_ ending: Ending) {
    if isOpen { state = .ending(ending) }
  }

  /// A fault silences the connection before HTTP/2.
  mutating func faultSilences() { state = .silenced }

  /// Whether it is the client's own decision if the client closes the connection now: the server has sent no GOAWAY.
  var isCloseByClient: Bool { state == .open(.serving) && processedStreams.lastAccepted == .max }

  enum CloseAction: Equatable {
    case none
    /// Close now: no frames are written.
    case close
    /// Write the last frames; the end of that closes the connection.
    case write
  }

  /// The server closes the connection.
  mutating func closeRequested() -> CloseAction {
    switch state {
    case .closing, .closingAfterHeldFrames, .ending(.close): return .none
    case .open, .ending:
      state = .ending(.close)
      return .write
    default:
      state = closingState
      return .close
    }
  }

  /// The server closes the connection without any further TLS or HTTP/2 message, or after a last one. Returns whether the
  /// attempts on the connection end now.
  mutating func closedAbruptly() -> Bool {
    defer { state = .closing }
    return !isClosing
  }

  /// What to record of a connection whose socket was closed.
  struct ClosedAction: Equatable {
    var handshakeFailed: Bool
    var isInitiatedByClient: Bool
    var endsAttempts: Bool
    /// Whether the client had left responses waiting for its flow-control window.
    var isWindowExhausted: Bool
  }

  /// The socket was closed by either side.
  mutating func socketClosed() -> ClosedAction {
    let action = ClosedAction(
      handshakeFailed: state == .handshaking, isInitiatedByClient: isCloseByClient, endsAttempts: !isClosing,
      isWindowExhausted: input.isWindowExhausted && heldFrames.isEmpty)
    heldFrames.removeAll()
    state = .closing
    return action
  }

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

  enum TimerAction: Equatable {
    case none
    case failHandshake
    case check
    case sendGoAwayAndClose
    case close
    case closeSocket
  }

  /// The timer elapsed.
  mutating func timerElapsed() -> TimerAction {
    defer { timer = nil }
    switch timer {
    case nil: return .none
    case .handshakeTimeout?: return .failHandshake
    case .idleCheck?: return state == .open(.serving) ? .check : .none
    // A fault may have silenced the connection since the first GOAWAY.
    case .shutdownNotice?: return isOpen ? .sendGoAwayAndClose : .close
    case .drainTimeout?: return .close
    case .lingerTimeout?: return .closeSocket
    }
  }
}
