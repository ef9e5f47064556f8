import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import APNSMockHTTPMessage
internal import APNSMockNotation

/// The server's part of a push: its checks, the rules, its response.
extension SimulationRun {
  mutating func send(_ number: Int, on connection: SimulatedConnection) {
    let stream = connection.lastStream + 2
    connection.lastStream = stream
    connection.streams[stream] = SimulatedConnection.Stream()
    guard connection.stateMachine.isOpen else { return }
    connection.lastActivity = now
    guard connection.stateMachine.requestReceived(on: stream) == .process else { return }
    connection.traffic.streamsOpened += 1
    process(push(number, on: connection), of: stream, on: connection)
    performPendingActions(on: connection)
    if plan.mayInject(at: .connection) { evaluateRules(of: connection) }
    settle(connection)
  }

  mutating func process(_ push: Traffic.Push, of stream: Int32, on connection: SimulatedConnection) {
    guard var exchange = exchange(for: push, on: connection) else {
      let response = FaultedExchange(push.verdict, acceptedBody: []).response
      return respond(with: response, to: stream, on: connection)
    }
    count(exchange)
    if !(exchange.sendsResponse && exchange.response.status == 403) {
      announceStreamLimit(before: nil, on: stream, of: connection)
    }
    if exchange.blocksTokenUpdates { connection.authentication.blockTokenUpdates(now: push.receivedAt) }
    add(exchange.connectionActions, to: connection, cause: exchange.decidingAction)
    guard exchange.takesTime else { return complete(&exchange, of: stream, on: connection) }
    connection.streams[stream]?.exchange = exchange
    add([.continuePush(stream: stream, after: exchange.delay)], to: connection, cause: exchange.decidingAction)
  }

  /// Returns what the rules decide about a push; nil for APNs' own response.
  func exchange(for push: Traffic.Push, on connection: SimulatedConnection) -> FaultedExchange? {
    var exchange = FaultedExchange(push.verdict, acceptedBody: [])
    if let response = connection.responseUntilShutdown {
      exchange.apply(response, at: .request, serverTime: push.receivedAt)
      return exchange
    }
    var traffic = Traffic(connection: connection.traffic, push: push)
    exchange.apply(plan.decide(traffic, at: .request, now: now), at: .request, serverTime: push.receivedAt)
    if exchange.sendsResponse {
      traffic.response = exchange.response.traffic
      let decision = plan.decide(traffic, at: .response, now: now, additionsOnly: exchange.isFaulted)
      exchange.apply(decision, at: .response, serverTime: push.receivedAt)
    }
    return exchange.injections.isEmpty ? nil : exchange
  }

  mutating func count(_ exchange: FaultedExchange) {
    for injection in exchange.injections where injection.continues || injection.action.name.continues == true {
      additions[injection.action.name.rawValue, default: 0] += 1
    }
    // The response is only late.
    if case .hang(_, .answer) = exchange.decidingAction { additions[Action.Name.hang.rawValue, default: 0] += 1 }
  }

  /// Ends an exchange, after its delay.
  mutating func complete(
    _ exchange: inout FaultedExchange, of stream: Int32, on connection: SimulatedConnection
  ) {
    release(exchange)
    connection.streams[stream]?.exchange = nil
    let processed = connection.stateMachine.processedStreams
    let actions = exchange.endingActions(on: stream, processed)
    let action = exchange.decidingAction
    if exchange.sendsResponse {
      respond(with: exchange, to: stream, on: connection)
    } else if exchange.resetCode(on: stream, processed) != nil {
      resolve(stream, action.name.rawValue, on: connection)
    } else {
      // The stream stays open, unless one of the actions ends the connection.
      connection.streams[stream]?.hasOutcome = true
      count(action.name.rawValue)
    }
    add(actions, to: connection, cause: action)
  }

  mutating func respond(
    with exchange: FaultedExchange, to stream: Int32, on connection: SimulatedConnection
  ) {
    guard let interval = exchange.mutation.interval else {
      return respond(with: exchange.response, to: stream, on: connection)
    }
    announceStreamLimit(before: exchange.response.status, on: stream, of: connection)
    countRejection(exchange.response.status, on: connection)
    let parts = exchange.mutation.parts(of: exchange.response.body, status: exchange.response.status)
    connection.streams[stream]?.exchange = exchange
    connection.streams[stream]?.remainingParts = max(1, parts.count)
    add([.continuePush(stream: stream, after: interval)], to: connection, cause: exchange.decidingAction)
  }

  mutating func respond(
    with response: FaultedExchange.Response, to stream: Int32, on connection: SimulatedConnection
  ) {
    announceStreamLimit(before: response.status, on: stream, of: connection)
    countRejection(response.status, on: connection)
    receive(response, on: stream, of: connection)
  }

  /// The provider receives a complete response.
  mutating func receive(
    _ response: FaultedExchange.Response, on stream: Int32, of connection: SimulatedConnection
  ) {
    resolve(stream, response.reasonText.map { "\(response.status) \($0)" } ?? String(response.status), on: connection)
    guard response.reason == .expiredProviderToken else { return }
    // APNs may accept no other token on this connection (Protocol.md, section 3.2, observed).
    renewToken()
    leave(connection, cause: Reason.expiredProviderToken.text)
  }

  mutating func continuePush(_ stream: Int32, on connection: SimulatedConnection) {
    guard connection.stateMachine.isOpen, var exchange = connection.streams[stream]?.exchange else { return }
    guard let parts = connection.streams[stream]?.remainingParts, parts > 0 else {
      return complete(&exchange, of: stream, on: connection)
    }
    connection.streams[stream]?.remainingParts = parts - 1
    if parts > 1, let interval = exchange.mutation.interval {
      return add([.continuePush(stream: stream, after: interval)], to: connection, cause: exchange.decidingAction)
    }
    receive(exchange.response, on: stream, of: connection)
  }

  func release(_ exchange: FaultedExchange?) {
    guard let exchange, exchange.isDelayedByRule else { return }
    for injection in exchange.injections { ruleCounters.release(injection) }
  }

  /// Announces the stream limit, if it changes, and refuses the other streams when a rejection reduces it.
  mutating func announceStreamLimit(
    before status: Int?, on stream: Int32, of connection: SimulatedConnection
  ) {
    let wasThrottled = connection.streamLimit.isThrottled
    let isTrusted = connection.authentication.providerTokenAccepted
    guard connection.streamLimit.change(before: status, isTrusted: isTrusted) != nil else { return }
    readyLanes.append(connection.lane)
    guard connection.streamLimit.isThrottled, !wasThrottled else { return }
    for (other, state) in connection.streams where other != stream && state.remainingParts == 0 {
      release(state.exchange)
      resolve(other, "REFUSED_STREAM", on: connection)
    }
  }

  mutating func countRejection(_ status: Int, on connection: SimulatedConnection) {
    guard connection.rejections.endsConnection(after: status, limit: settings.errorsBeforeGoaway) else { return }
    connection.pendingActions.append((.sendGoAwayAndClose(.tooManyErrors), APNSSetting.errorsBeforeGoaway.rawValue))
  }

  // MARK: - Requests

  mutating func push(_ number: Int, on connection: SimulatedConnection) -> Traffic.Push {
    let devices = max(load.devices, 1)
    let index = number / lanes.count % devices
    // APNs rejects a device token of 64 zeros, so the first device has the number after the last.
    let token = Hexadecimal.text(UInt64(index == 0 ? devices : index), digits: 64)
    let request = HTTPRequest(
      headers: HeaderList([
        (":method", "POST"), (":scheme", "https"), (":authority", Self.serverName), (":path", "/3/device/\(token)"),
        ("authorization", authorization), ("apns-topic", load.topic), ("apns-push-type", load.pushType),
        ("apns-priority", load.priority),
      ]), body: Array("{\(load.payloadMembers),\"number\":\(number)}".utf8))
    let time = Self.startTime + now / 1_000_000
    var verdict = rulebook.validate(request, authentication: &connection.authentication, keys: keys, now: time)
    if verdict.isAccepted, let rate = deviceRate?.rate {
      let isAdmitted = Array(token.utf8).withUnsafeBytes { deviceRate?.admit($0, now: now) ?? true }
      if !isAdmitted { verdict.reject(over: rate) }
    }
    return Traffic.Push(
      request: request, verdict: verdict, key: PushKey(request, verdict.facts, defaultTopic: nil), receivedAt: time)
  }

  mutating func renewToken() {
    let issuedAt = Self.startTime / 1000 + now / 1_000_000_000
    authorization =
      "bearer " + Base64URL.text(Array(#"{"alg":"ES256","kid":"MOCKKEY001"}"#.utf8)) + "."
      + Base64URL.text(Array(#"{"iss":"MOCKTEAM01","iat":\#(issuedAt)}"#.utf8)) + "."
      + String(repeating: "A", count: 86)
  }
}
