@testable import MockAPNS
import APNSMockFaultModel
import Testing

@Suite struct ConnectionStateMachineTests {
  typealias Machine = ConnectionStateMachine
  typealias State = ConnectionStateMachine.State

  static let states: [State] = [
    .awaitingFirstByte, .handshaking, .handshakeDelayed, .settingsDelayed, .open(.serving), .open(.draining),
    .open(.ending), .silenced, .closing,
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
        (.open(.ending), .process, .open(.ending)),
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
      ]
    ) { $0.requestReceived(on: 1) }
    // After a GOAWAY that excludes the stream.
    Self.check(otherwise: .recordAsUnprocessed, []) { machine -> Machine.RequestAction in
      machine.faultSentGoAway(lastStream: 3, now: 7)
      return machine.requestReceived(on: 5)
    }
  }

  @Test func flushing() {
    Self.check(
      otherwise: false,
      [.serving, .draining, .ending].map { (.open($0), true, .open($0)) }
    ) { $0.flushStarted() }
    Self.check(
      otherwise: .none,
      [(.open(.serving), .closeFinishedSession, .open(.serving)), (.open(.draining), .close, .open(.draining))]
    ) {
      $0.flushCompleted(isFinished: true, hasPendingWork: true)
    }
    Self.check(otherwise: .none, [(.open(.draining), .close, .open(.draining))]) {
      $0.flushCompleted(isFinished: false, hasPendingWork: false)
    }
    Self.check(otherwise: .none, []) { $0.flushCompleted(isFinished: false, hasPendingWork: true) }
    var machine = Machine(state: .open(.serving))
    #expect(value(machine.flushStarted()))
    #expect(!value(machine.flushStarted()), "not while an outer call flushes")
    _ = machine.flushCompleted(isFinished: false, hasPendingWork: false)
    #expect(value(machine.flushStarted()))
  }

  @Test func shuttingDown() {
    Self.check(
      otherwise: .close,
      [
        (.open(.serving), .announceShutdown(sendsGoAway: true), .open(.serving)),
        (.open(.draining), .none, .open(.draining)),
        (.open(.ending), .none, .open(.ending)),
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
      otherwise: .none, [(.open(.serving), .sendAndClose(lastStream: 5), .open(.ending))]
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
    let ending: [(State, State)] = [
      (.open(.ending), .closing), (.closing, .closing),
    ]
    func next(_ state: State) -> State { ending.first { $0.0 == state }?.1 ?? .closing }
    for (state, action, after) in Self.table({ $0.closeRequested() }) {
      switch state {
      case .closing: #expect(action == .none)
      case .open: #expect(action == .close(writesFrames: true))
      default: #expect(action == .close(writesFrames: false))
      }
      #expect(after == next(state))
    }
    for (state, _, after) in Self.table({ $0.closedAbruptly() }) { #expect(after == next(state)) }
    for (state, action, after) in Self.table({ $0.socketClosed() }) {
      #expect(action.handshakeFailed == (state == .handshaking))
      #expect(action.isInitiatedByClient == (state == .open(.serving)))
      #expect(after == next(state))
    }
    for (_, _, after) in Self.table({ $0.faultSilences() }) { #expect(after == .silenced) }
    for (state, _, after) in Self.table({ $0.faultEndsConnection() }) {
      switch state {
      case .open(.serving): #expect(after == .open(.ending))
      case .open(.draining): #expect(after == .open(.ending))
      default: #expect(after == state)
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
    #expect(value(machine.timerRequested(.lingerTimeout)))
    machine.timerElapsed()
    #expect(value(machine.timerRequested(.idleCheck)))
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
