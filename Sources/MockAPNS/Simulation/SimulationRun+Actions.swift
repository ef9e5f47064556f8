import APNSMockFaultModel
import APNSMockFaults

/// The actions of rules on connections.
extension SimulationRun {
  func add(_ actions: [ConnectionAction], to connection: SimulatedConnection, cause: Action) {
    connection.pendingActions += actions.map { ($0, cause.name.rawValue) }
  }

  /// Evaluates the rules at `connection`, now and again whenever one of them could fire.
  mutating func evaluateRules(of connection: SimulatedConnection) {
    connection.evaluation += 1
    guard connection.stateMachine.isOpen, plan.mayInject(at: .connection) else { return }
    let traffic = connection.traffic(at: now)
    let decision = plan.decide(Traffic(connection: traffic), at: .connection, now: now)
    count(decision)
    for injection in decision {
      if let action = ConnectionAction(injection) { add([action], to: connection, cause: injection.action) }
    }
    performPendingActions(on: connection)
    guard connection.stateMachine.isOpen, let next = plan.nextEvaluation(after: now, for: traffic) else { return }
    schedule(
      .evaluateRules(number: connection.evaluation), after: .nanoseconds(max(0, next - now)), on: connection)
  }

  mutating func performPendingActions(on connection: SimulatedConnection) {
    let actions = connection.pendingActions
    connection.pendingActions = []
    for (action, cause) in actions where connection.stateMachine.isOpen {
      perform(action, on: connection, cause: cause)
    }
  }

  mutating func perform(_ action: ConnectionAction, on connection: SimulatedConnection, cause: String) {
    let steps = connection.stateMachine.begin(action, lastReceivedStream: max(0, connection.lastStream), now: now)
    perform(steps, on: connection, cause: cause)
  }

  mutating func perform(
    _ steps: [ConnectionStateMachine.Step], on connection: SimulatedConnection, cause: String
  ) {
    for step in steps {
      switch step {
      case .sendGoAway(_, let lastStream, _): receiveGoAway(on: connection, lastStream: lastStream, cause: cause)
      case .sendGoAwayAndClose(let reason): sendGoAwayAndClose(reason, on: connection, cause: cause)
      case .end: write(on: connection, cause: cause)
      case .close: if connection.stateMachine.closeRequested() != .none { end(connection, cause: cause) }
      case .closeSocket: end(connection, cause: cause)
      case .announce(let parameters):
        guard connection.stateMachine.isOpen, let limit = parameters.maxConcurrentStreams else { continue }
        connection.streamLimit.pin(limit)
        readyLanes.append(connection.lane)
      case .respondUntilShutdown(let injection): connection.responseUntilShutdown = injection
      case .continuePush(let stream): continuePush(stream, on: connection)
      case .continueHandshake: openHTTP2(connection)
      case .sendSettings: receiveSettings(on: connection)
      case .wait(let time, let timer): schedule(.elapsed(timer, cause: cause), after: time, on: connection)
      // The simulation evaluates rules by an event of its own.
      case .withholdWindow, .ignorePings, .evaluateRules: continue
      }
    }
  }

  mutating func silenceHandshake(of connection: SimulatedConnection, for time: Duration?, cause: Action.Name) {
    connection.obstacle = cause.rawValue
    connection.stateMachine.faultSilences()
    if let time { perform([.wait(time, .silence)], on: connection, cause: cause.rawValue) }
  }

  mutating func sendGoAwayAndClose(
    _ reason: ConnectionCloseReason, on connection: SimulatedConnection, cause: String
  ) {
    let action = connection.stateMachine.goAwayRequested(
      immediately: reason.closesAtOnce, lastReceivedStream: max(0, connection.lastStream), now: now)
    switch action {
    case .none: return
    case .sendAndDrain(let lastStream), .sendAndClose(let lastStream):
      receiveGoAway(on: connection, lastStream: lastStream, cause: cause)
    }
    write(on: connection, cause: cause)
    guard connection.stateMachine.isOpen else { return }
    schedule(.closeDraining, after: MockServer.Configuration().shutdownTimeout, on: connection)
  }

  /// The provider receives GOAWAY.
  mutating func receiveGoAway(on connection: SimulatedConnection, lastStream: Int32, cause: String) {
    leave(connection, cause: cause)
    for (stream, state) in connection.streams where stream > lastStream {
      release(state.exchange)
      resolve(stream, cause, on: connection)
    }
  }

  /// Writes the pending responses, and ends or silences the connection if that is due.
  mutating func write(on connection: SimulatedConnection, cause: String) {
    guard connection.stateMachine.writingStarted() else { return }
    var action = ConnectionStateMachine.WriteAction.writeAgain
    while action == .writeAgain {
      action = connection.stateMachine.roundWritten(
        isComplete: true, isFinished: false, hasPendingWork: !connection.streams.isEmpty)
    }
    switch action {
    case .none, .writeAgain: return
    case .silence: connection.obstacle = cause
    case .close, .closeFinishedSession, .reset: end(connection, cause: cause)
    }
  }
}
