package import APNSMockRules
internal import APNSMockDevices
package import APNSMockFaultModel
internal import APNSMockFaults
internal import APNSMockHTTP2Session
package import APNSMockHTTPMessage
internal import APNSMockInbox

extension ServerState {
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

  /// Returns the verdict on a push as the first one on a new connection to the first listener, without processing it:
  /// nothing is recorded, counted or delivered, and no fault applies.
  package func verdict(on request: HTTPRequest) -> Verdict {
    let environment = listeners.first(where: \.kind.isAPNs)?.environment ?? configuration.environment
    var rulebook = activePolicy.load().rulebooks[environment]
    rulebook.apps = apps.load()
    rulebook.clockOffset = clock.machineOffset
    let now = clock.now
    var authentication = ConnectionAuthentication()
    var verdict = rulebook.validate(
      request, authentication: &authentication, keys: keys.load(), now: now,
      isRegistered: { devices.match($0, now: 0) != nil })
    guard verdict.isAccepted, let token = verdict.facts.deviceToken else { return verdict }
    let device = request.headers.bytes.withUnsafeBytes { packed in
      devices.match(
        packed[token], now: now,
        unregisteredDelay: rulebook.unregisteredDelay)
    }
    rulebook.checkDevice(device?.token, of: request, certificate: nil, now: now, verdict: &verdict)
    return verdict
  }

  /// Returns the active rules that would fire for a push that is not processed, as the first attempt on a new connection:
  /// first those of the injection point `request`, then those of `response`. Their counters do not change.
  package func firingRules(for request: HTTPRequest, _ verdict: Verdict) -> [(profile: String?, rule: Rule)] {
    let selection = faults.selection
    let environment = listeners.first(where: \.kind.isAPNs)?.environment ?? configuration.environment
    let plan = activePolicy.load().plan
    var traffic = Traffic(
      connection: Traffic.Connection(number: 0, client: "127.0.0.1", environment: environment, streamsOpened: 1),
      push: Traffic.Push(
        request: request, verdict: verdict, key: PushKey(request, verdict.facts, defaultTopic: nil),
        receivedAt: clock.now))
    let now = MachineTime.nanoseconds
    let atRequest = plan.evaluateWithoutCounting(traffic, at: .request, now: now)
    traffic.response = Traffic.Response(status: verdict.status, reason: verdict.reason?.text)
    let all = selection.selectedProfile.profile.rules + selection.added.map(\.rule)
    return (atRequest + plan.evaluateWithoutCounting(traffic, at: .response, now: now)).compactMap {
      report -> (profile: String?, rule: Rule)? in
      guard case .mayFire = report.outcome, let rule = all.first(where: { $0.name == report.rule }) else { return nil }
      return (report.profile, rule)
    }
  }
}
