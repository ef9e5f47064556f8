@testable import MockAPNS
import APNSMockFaultModel
import NIOCore
import Testing

@Suite struct ConnectionStateMachineTests {
  typealias Machine = ConnectionStateMachine
  typealias State = ConnectionStateMachine.State

  static let states: [State] = [
    .awaitingFirstByte, .handshaking, .handshakeDelayed, .settingsDelayed, .open(.serving), .open(.draining),
    .ending(.close), .ending(.reset), .ending(.silence), .silenced, .closingAfterHeldFrames, .closing,
  ]

  /// Returns, for each state, the action of an event and the state after it.
  private static func table<Action>(_ event: (inout Machine) -> Action) -> [(State, Action, State)] {
    states.map { state in
      var machine = Machine(state: state)
      let action = event(&machine)
      return (state, action, machine.state)
    }
  }

  /// Checks an event against a table: a state that `changes` does not list keeps its state and yields `otherwise`.
  private static func check<Action: Equatable>(
    otherwise: Action, _ changes: [(State, Action, State)], at location: SourceLocation = #_sourceLocation,
    _ event: (inout Machine) -> Action
  ) {
    for (state, action, next) in table(event) {
      let expected = changes.first { $0.0 == state } ?? (state, otherwise, state)
      #expect(action == expected.1, "\(state)", sourceLocation: location)
      #expect(next == expected.2, "\(state)", sourceLocation: location)
    }
  }

  /// Returns its argument. `#expect` itself cannot evaluate a mutating call.
  private func value<Value>(_ value: Value) -> Value { value }

  @Test(arguments: [UInt8(ascii: "P"), UInt8(ascii: "G"), UInt8(ascii: "z"), UInt8(ascii: "A")])
  func receivingPlainText(first: UInt8) {
    var machine = Machine()
    #expect(value(machine.receivedBytes(startingWith: first)) == .refusePlainText)
    #expect(machine.state == .closing)
    #expect(value(machine.receivedBytes(startingWith: first)) == .discard)
  }

  @Test(arguments: [22, 0, UInt8(ascii: "@"), UInt8(ascii: "["), UInt8(ascii: "`"), UInt8(ascii: "{"), 255])
  func receivingTLS(first: UInt8) {
    var machine = Machine()
    #expect(value(machine.receivedBytes(startingWith: first)) == .startHandshake)
    #expect(machine.state == .handshaking)
  }

  @Test func receivingBytes() {
    Self.check(
      otherwise: .discard,
      [
        (.awaitingFirstByte, .startHandshake, .handshaking), (.handshaking, .process, .handshaking),
        (.settingsDelayed, .store, .settingsDelayed), (.open(.serving), .process, .open(.serving)),
        (.open(.draining), .process, .open(.draining)),
      ]
    ) { $0.receivedBytes(startingWith: 22) }
  }

  @Test func delays() {
    Self.check(otherwise: false, [(.handshakeDelayed, true, .handshaking)]) { $0.handshakeDelayElapsed() }
    Self.check(otherwise: false, [(.settingsDelayed, true, .open(.serving))]) { $0.settingsDelayElapsed() }
    var machine = Machine(state: .handshaking)
    machine.handshakeCompleted(delaysSettings: true)
    #expect(machine.state == .settingsDelayed && machine.isReadingSuspended && !machine.isOpen)
    machine = Machine(state: .handshaking)
    machine.handshakeCompleted(delaysSettings: false)
    #expect(machine.state == .open(.serving) && !machine.isReadingSuspended && machine.isOpen)
  }

  @Test func requests() {
    Self.check(
      otherwise: .recordAsUnprocessed,
      [
        (.open(.serving), .process, .open(.serving)), (.open(.draining), .process, .open(.draining)),
        (.ending(.silence), .process, .ending(.silence)),
      ]
    ) { $0.requestReceived(on: 1) }
    // After a GOAWAY that excludes the stream.
    Self.check(otherwise: .recordAsUnprocessed, []) { machine -> Machine.RequestAction in
      machine.faultSentGoAway(lastStream: 3, now: 7)
      return machine.requestReceived(on: 5)
    }
  }

  @Test func writingStarts() {
    let written = [State.open(.serving), .open(.draining), .ending(.close), .ending(.reset), .ending(.silence)]
    let changes: [(State, Bool, State)] = written.map { ($0, true, $0) }
    Self.check(otherwise: false, changes) { $0.writingStarted() }
    var machine = Machine(state: .open(.serving))
    #expect(value(machine.writingStarted()))
    #expect(!value(machine.writingStarted()), "not within the loop")
    _ = machine.roundWritten(isComplete: true, isFinished: false, hasPendingWork: false)
    #expect(value(machine.writingStarted()))
  }

  /// A connection with more frames, one whose session has ended, and one without pending work.
  @Test func writingRounds() {
    let written = [State.open(.serving), .open(.draining), .ending(.close), .ending(.reset), .ending(.silence)]
    let again: [(State, Machine.WriteAction, State)] = written.map { ($0, .writeAgain, $0) }
    Self.check(otherwise: .none, again) {
      $0.roundWritten(isComplete: false, isFinished: false, hasPendingWork: true)
    }
    let ending: [(State, Machine.WriteAction, State)] = [
      (.ending(.close), .close, .closing), (.ending(.reset), .reset, .ending(.reset)),
      (.ending(.silence), .silence, .silenced),
    ]
    Self.check(otherwise: .none, ending) { $0.roundWritten(isComplete: true, isFinished: false, hasPendingWork: true) }
    let drained: (State, Machine.WriteAction, State) = (.open(.draining), .writeAgain, .ending(.close))
    Self.check(otherwise: .none, ending + [drained]) {
      $0.roundWritten(isComplete: true, isFinished: false, hasPendingWork: false)
    }
    Self.check(
      otherwise: .none,
      ending + [drained, (.open(.serving), .closeFinishedSession(byClient: true), .closing)]
    ) { $0.roundWritten(isComplete: true, isFinished: true, hasPendingWork: true) }
  }

  /// If the client does not read, no frames are created, except for the last ones.
  @Test func writingToAClientThatDoesNotRead() {
    for state in Self.states {
      var machine = Machine(state: state)
      #expect(machine.roundLimit > 0)
      machine.writabilityChanged(false)
      #expect(machine.roundLimit == (state == .ending(.close) ? .max : 0))
    }
    let ending: [(State, Machine.WriteAction, State)] = [
      (.ending(.close), .writeAgain, .ending(.close)), (.ending(.reset), .reset, .ending(.reset)),
      (.ending(.silence), .silence, .silenced),
    ]
    Self.check(otherwise: .none, ending) { machine in
      machine.writabilityChanged(false)
      return machine.roundWritten(isComplete: false, isFinished: false, hasPendingWork: true)
    }
  }

  @Test func encryptionFails() {
    let open = Self.states.filter { $0 != .closing && $0 != .closingAfterHeldFrames }
    let changes: [(State, Machine.WriteAction, State)] = open.map { ($0, .close, .closing) }
    Self.check(otherwise: .none, changes) { $0.writingFailed() }
  }

  @Test func framesThatWaitedAreWritten() {
    Self.check(otherwise: false, [(.closingAfterHeldFrames, true, .closing)]) {
      $0.heldFramesReleased(now: .now(), hasSentFields: true)
    }
  }

  @Test func writesGoDirectlyToTheSocketUntilTheChannelBuffersOne() {
    var machine = Machine()
    #expect(machine.writesDirectly)
    machine.writeBuffered()
    machine.writeBuffered()
    machine.bufferedWriteEnded()
    #expect(!machine.writesDirectly)
    machine.bufferedWriteEnded()
    #expect(machine.writesDirectly)
  }

  @Test func readingStopsAndStartsOnce() {
    var machine = Machine(state: .handshaking)
    #expect(value(machine.readingChange()) == nil)
    machine.handshakeCompleted(delaysSettings: true)
    #expect(value(machine.readingChange()) == false)
    machine.writabilityChanged(false)
    #expect(value(machine.readingChange()) == nil)
    _ = machine.settingsDelayElapsed()
    #expect(value(machine.readingChange()) == nil, "the client does not read")
    machine.writabilityChanged(true)
    #expect(value(machine.readingChange()) == true)
  }

  @Test func shuttingDown() {
    Self.check(
      otherwise: .close,
      [
        (.open(.serving), .announceShutdown(sendsGoAway: true), .open(.serving)),
        (.open(.draining), .none, .open(.draining)), (.ending(.close), .none, .ending(.close)),
        (.ending(.reset), .none, .ending(.reset)), (.ending(.silence), .none, .ending(.silence)),
      ]
    ) { $0.shutdownRequested() }
    var machine = Machine(state: .open(.serving))
    machine.faultSentGoAway(lastStream: 3, now: 7)
    #expect(machine.shutdownRequested() == .announceShutdown(sendsGoAway: false))
  }

  @Test func goAway() {
    Self.check(otherwise: .none, [(.open(.serving), .sendAndDrain(lastStream: 9), .open(.draining))]) {
      $0.goAwayRequested(immediately: false, lastReceivedStream: 9, now: 7)
    }
    Self.check(
      otherwise: .none, [(.open(.serving), .sendAndClose(lastStream: 5), .ending(.close))]
    ) { machine -> Machine.GoAwayAction in
      if machine.state == .open(.serving) { _ = machine.requestReceived(on: 5) }
      return machine.goAwayRequested(immediately: true, lastReceivedStream: 9, now: 7)
    }
    var machine = Machine(state: .open(.serving))
    machine.faultSentGoAway(lastStream: 3, now: 7)
    #expect(
      value(machine.goAwayRequested(immediately: false, lastReceivedStream: 9, now: 8)) == .sendAndDrain(lastStream: 3))
    #expect(machine.processedStreams.loweredAt == 7, "a later GOAWAY excludes no further stream")
  }

  @Test func closing() {
    let open = [State.open(.serving), .open(.draining)]
    let written: [State] = open + [.ending(.reset), .ending(.silence)]
    let early: [State] = [.awaitingFirstByte, .handshaking, .handshakeDelayed, .settingsDelayed, .silenced]
    var changes: [(State, Machine.CloseAction, State)] = written.map { ($0, .write, .ending(.close)) }
    changes += early.map { ($0, .close, .closing) }
    Self.check(otherwise: .none, changes) { $0.closeRequested() }
    for (state, endsAttempts, after) in Self.table({ $0.closedAbruptly() }) {
      #expect(endsAttempts == (state != .closing && state != .closingAfterHeldFrames))
      #expect(after == .closing)
    }
    for (state, action, after) in Self.table({ $0.socketClosed() }) {
      #expect(action.handshakeFailed == (state == .handshaking))
      #expect(action.isInitiatedByClient == (state == .open(.serving)))
      #expect(action.endsAttempts == (state != .closing && state != .closingAfterHeldFrames))
      #expect(!action.isWindowExhausted)
      #expect(after == .closing)
    }
    for (_, _, after) in Self.table({ $0.faultSilences() }) { #expect(after == .silenced) }
    for ending in [Machine.Ending.close, .reset, .silence] {
      for (state, _, after) in Self.table({ $0.faultEndsConnection(ending) }) {
        #expect(after == (open.contains(state) ? .ending(ending) : state))
      }
    }
  }

  @Test func theServerEndsAConnectionAfterItsGoAway() {
    var machine = Machine(state: .open(.serving))
    #expect(machine.isCloseByClient)
    machine.faultSentGoAway(lastStream: 3, now: 7)
    #expect(!machine.isCloseByClient)
  }

  @Test func timers() {
    for first in Machine.TimerPurpose.allCases {
      for second in Machine.TimerPurpose.allCases {
        var machine = Machine()
        #expect(value(machine.timerRequested(first)))
        #expect(value(machine.timerRequested(second)) == (second.rawValue >= first.rawValue))
        #expect(machine.timer == (second.rawValue >= first.rawValue ? second : first))
        machine = Machine()
        #expect(!value(machine.timerCancelled(through: second)))
        #expect(value(machine.timerRequested(first)))
        #expect(value(machine.timerCancelled(through: second)) == (first.rawValue <= second.rawValue))
      }
    }
    var machine = Machine()
    #expect(value(machine.timerElapsed()) == .none)
    #expect(value(machine.timerRequested(.lingerTimeout)))
    #expect(value(machine.timerElapsed()) == .closeSocket)
    #expect(value(machine.timerRequested(.idleCheck)))
  }

  @Test(
    arguments: [
      (.handshakeTimeout, .failHandshake, []), (.idleCheck, .none, [(.open(.serving), .check)]),
      (
        .shutdownNotice, .close,
        [(.open(.serving), .sendGoAwayAndClose), (.open(.draining), .sendGoAwayAndClose)]
      ),
      (.drainTimeout, .close, []), (.lingerTimeout, .closeSocket, []),
    ] as [(Machine.TimerPurpose, Machine.TimerAction, [(State, Machine.TimerAction)])])
  func elapsedTimers(row: (Machine.TimerPurpose, Machine.TimerAction, [(State, Machine.TimerAction)])) {
    let changes: [(State, Machine.TimerAction, State)] = row.2.map { ($0.0, $0.1, $0.0) }
    Self.check(otherwise: row.1, changes) { machine -> Machine.TimerAction in
      _ = machine.timerRequested(row.0)
      return machine.timerElapsed()
    }
  }

  @Test func onlyTheFirstResetIsNew() {
    var machine = Machine(state: .open(.serving))
    #expect(value(machine.streamReset()))
    #expect(!value(machine.streamReset()))
  }

  @Test func lastStreamOfAGoAway() {
    var processed = ProcessedStreams()
    func last(_ lastStream: Action.LastStream, _ cause: ProcessedStreams.GoAwayCause) -> Int32 {
      processed.lastStream(of: Action.GoAwayParameters(lastStream: lastStream), causedBy: cause)
    }
    processed.didProcess(7)
    #expect(last(.beforeThis, .push(7)) == 5)
    #expect(last(.this, .push(7)) == 7)
    #expect(last(.all, .push(7)) == .max)
    #expect(last(.beforeThis, .push(1)) == 7, "a later stream was processed")
    #expect(processed.isOvertaken(5) && !processed.isOvertaken(7))
    #expect(last(.this, .connection(lastReceivedStream: 9)) == 9)
    #expect(last(.beforeThis, .connection(lastReceivedStream: 9)) == 9)
    #expect(last(.all, .connection(lastReceivedStream: 9)) == .max)
    processed.exclude(after: 5, at: 1)
    processed.exclude(after: 9, at: 2)
    #expect(last(.all, .push(7)) == 5)
    #expect(processed.loweredAt == 1)
  }
}
