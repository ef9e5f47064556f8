package import APNSMockRules
internal import APNSMockDevices
internal import APNSMockHTTP2Session
package import APNSMockHTTPMessage

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
        UnsafeRawBufferPointer(rebasing: packed[token.indices]), now: now,
        unregisteredDelay: rulebook.unregisteredDelay)
    }
    rulebook.checkDevice(device?.token, of: request, certificate: nil, now: now, verdict: &verdict)
    return verdict
  }
}
