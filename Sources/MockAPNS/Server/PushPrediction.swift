internal import APNSMockNotation
package import APNSMockRules
package import APNSMockDevices
package import APNSMockFaultModel
internal import APNSMockFaults
internal import APNSMockHTTP2Session
package import APNSMockHTTPMessage
package import APNSMockInbox

/// What would happen to a push that is not processed.
package struct PushPrediction {
  /// APNs' verdict.
  package let verdict: Verdict
  /// The active rules that would fire, the one that decides first.
  package let injections: Injections
  /// How the attempt would end for the client.
  package let ending: Ending
  /// The status and the reason of the response; nil if none would be sent.
  package let response: (status: Int, reason: String?)?
  /// The time until the end of the attempt that rules would add.
  package let delay: Duration
  /// Whether APNs would accept the push, whatever the client learns of it.
  package let isAccepted: Bool
  /// The state that the delivery to a registered device would have, and why the device holds the push; nil if the push would not
  /// be accepted or its device token is not registered.
  package let delivery: (state: DeliveryState, cause: HoldCause?)?
}

extension ServerState {
  /// Predicts what would happen to a push as the first one on a new connection to the first listener: nothing is recorded, counted
  /// or delivered. Answers of upstream are not predicted.
  package func predict(_ request: HTTPRequest) -> PushPrediction {
    let environment = listeners.first(where: \.kind.isAPNs)?.environment ?? configuration.environment
    let policy = activePolicy.load()
    let now = clock.now
    let (verdict, device) = validate(request, policy.rulebooks[environment], now: now)
    let exchange = exchange(request, verdict, environment, policy.plan.copy(), now: now)
    let delivery = device.flatMap { device -> (state: DeliveryState, cause: HoldCause?)? in
      guard exchange.isAccepted else { return nil }
      let push = request.headers.bytes.withUnsafeBytes { headers in
        request.body.withUnsafeBytes { AcceptedPush(verdict.facts, headers: headers, body: $0, to: device, at: now) }
      }
      return devices.predictedDelivery(of: push, now: now, settings: policy.settings)
    }
    return PushPrediction(
      verdict: verdict, injections: exchange.injections, ending: exchange.ending(on: 1, ProcessedStreams()),
      response: exchange.sendsResponse ? (exchange.response.status, exchange.response.reasonText) : nil,
      delay: exchange.delay, isAccepted: exchange.isAccepted, delivery: delivery)
  }

  /// Whether the clock was moved so far that provider tokens signed now, by the machine's clock, are expired.
  package var rejectsNewTokens: Bool {
    var rulebook = activePolicy.load().rulebooks[configuration.environment]
    rulebook.clockOffset = clock.machineOffset
    return rulebook.rejectsNewTokens
  }

  /// Returns a request as the server receives it. Of a header list that is too large it has the first fields only,
  /// because the size is the first check.
  package static func receivedRequest(_ fields: [(String, String)], body: [UInt8]) -> HTTPRequest {
    let size = fields.reduce(0) { $0 + $1.0.utf8.count + $1.1.utf8.count + 32 }
    let isTooLarge = size > HTTP2Limits.maxHeaderListSize
    var request = HTTPRequest(headers: HeaderList(isTooLarge ? Array(fields.prefix(4)) : fields), body: body)
    request.headersTooLarge = isTooLarge
    return request
  }

  /// Returns APNs' verdict, and the registered device token.
  private func validate(
    _ request: HTTPRequest, _ rulebook: Rulebook, now: ServerTime
  ) -> (Verdict, DeviceRegistry.Match?) {
    var rulebook = rulebook
    rulebook.apps = apps.load()
    rulebook.clockOffset = clock.machineOffset
    var authentication = ConnectionAuthentication()
    var verdict = rulebook.validate(
      request, authentication: &authentication, keys: keys.load(), now: now,
      isRegistered: { devices.match($0, now: 0) != nil })
    guard verdict.isAccepted, let token = verdict.facts.deviceToken else { return (verdict, nil) }
    let device = request.headers.bytes.withUnsafeBytes { packed in
      devices.match(packed[token], now: now, unregisteredDelay: rulebook.unregisteredDelay)
    }
    rulebook.checkDevice(device?.token, of: request, certificate: nil, now: now, verdict: &verdict)
    return (verdict, device)
  }

  /// Returns what `plan` decides about the next attempt of a push.
  private func exchange(
    _ request: HTTPRequest, _ verdict: Verdict, _ environment: PushEnvironment, _ plan: FaultPlan, now: ServerTime
  ) -> FaultedExchange {
    let key = PushKey(request, verdict.facts, defaultTopic: nil)
    let usesID = plan.profile.pushIdentity == .apnsID && verdict.facts.apnsID != nil
    let counted = usesID ? PushKey(request, verdict.facts, defaultTopic: nil, usesID: true) : key
    let arrivedAt = MachineTime.nanoseconds
    let attempt = inbox.attempts.peek(counted, now: arrivedAt) - inbox.attempts.unprocessedAttempts(of: counted)
    var traffic = Traffic(
      connection: Traffic.Connection(number: 0, client: "127.0.0.1", environment: environment, streamsOpened: 1),
      push: Traffic.Push(
        request: request, verdict: verdict, key: key, attempt: max(1, Int(attempt)), receivedAt: now))
    var exchange = FaultedExchange(verdict, acceptedBody: [])
    exchange.apply(plan.decide(traffic, at: .request, now: arrivedAt), at: .request, serverTime: now)
    if exchange.sendsResponse {
      traffic.response = exchange.response.traffic
      let decision = plan.decide(traffic, at: .response, now: arrivedAt, additionsOnly: exchange.isFaulted)
      exchange.apply(decision, at: .response, serverTime: now)
    }
    return exchange
  }
}
