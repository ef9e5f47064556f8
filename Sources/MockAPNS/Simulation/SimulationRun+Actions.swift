import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
internal import APNSMockNotation

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
    let steps = connection.faults.begin(
      action, on: &connection.stateMachine, lastReceivedStream: max(0, connection.lastStream), now: now)
    perform(steps, on: connection, cause: cause)
  }

  mutating func perform(
    _ steps: [ConnectionFaults.Step], on connection: SimulatedConnection, cause: String
  ) {
    for step in steps {
      switch step {
      case .flush: if flush(connection) { end(connection, cause: cause) }
      case .sendGoAway(_, let lastStream, _): receiveGoAway(on: connection, lastStream: lastStream, cause: cause)
      case .sendGoAwayAndClose(let reason): sendGoAwayAndClose(reason, on: connection, cause: cause)
      case .close, .reset:
        if case .close = connection.stateMachine.closeRequested() { end(connection, cause: cause) }
      case .silence: if connection.stateMachine.isOpen { silence(connection, cause: cause) }
      case .closeSilenced: if connection.stateMachine.state == .silenced { end(connection, cause: cause) }
      case .announce(let parameters):
        guard connection.stateMachine.isOpen, let limit = parameters.maxConcurrentStreams else { continue }
        connection.streamLimit.pin(limit)
        readyLanes.append(connection.lane)
      case .respondUntilShutdown(let injection): connection.responseUntilShutdown = injection
      case .continuePush(let stream): continuePush(stream, on: connection)
      case .wait(let time, let timer): schedule(.elapsed(timer, cause: cause), after: time, on: connection)
      case .withholdWindow, .ignorePings: continue
      }
    }
  }

  func silence(_ connection: SimulatedConnection, cause: String) {
    connection.obstacle = cause
    connection.stateMachine.faultSilences()
  }

  mutating func silenceHandshake(of connection: SimulatedConnection, for time: Duration?, cause: Action.Name) {
    silence(connection, cause: cause.rawValue)
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
    if flush(connection) { return end(connection, cause: cause) }
    schedule(.closeDraining, after: Configuration().shutdownTimeout, on: connection)
  }

  /// The provider receives GOAWAY.
  mutating func receiveGoAway(on connection: SimulatedConnection, lastStream: Int32, cause: String) {
    leave(connection, cause: cause)
    for (stream, state) in connection.streams where stream > lastStream {
      release(state.exchange)
      resolve(stream, cause, on: connection)
    }
  }

  /// Returns whether the server closes the connection after its pending responses.
  func flush(_ connection: SimulatedConnection) -> Bool {
    guard connection.stateMachine.flushStarted() else { return false }
    let action = connection.stateMachine.flushCompleted(
      isFinished: false, hasPendingWork: !connection.streams.isEmpty)
    return action == .close
  }
}
