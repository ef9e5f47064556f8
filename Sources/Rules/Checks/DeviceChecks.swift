package import APNSMockNotation
package import APNSMockHTTPMessage

/// The checks of the registered device (Protocol.md, section 8.2).
extension Rulebook {
  /// Rejects the device token of 64 zeros unless it is registered. Providers test their key, team and topic with it:
  /// the reason is `BadDeviceToken` only if everything else is right (Protocol.md, section 8.1, observed). One article says that
  /// APNs rejects it before it looks at the topic (once); the check stays after the topic, where most reports put it.
  ///
  /// - Parameter isRegistered: Returns whether a device token is registered.
  func checkZeroDeviceToken(
    _ facts: PushFacts, _ packed: UnsafeRawBufferPointer, isRegistered: (UnsafeRawBufferPointer) -> Bool
  ) throws(Rejection) {
    guard mode != .lenient, let token = facts.deviceToken, token.count == 64 else { return }
    let digits = packed[token]
    if digits.allSatisfy({ $0 == 0x30 }), !isRegistered(digits) { throw Self.zeroDeviceToken }
  }

  private static let zeroDeviceToken = Rejection(.deviceEnvironment, .badDeviceToken) { _, _ in
    "the device token is 64 zeros, which no device has: send the token the device registered"
  }

  /// Checks an accepted push against what is registered about its device token: the token belongs to this environment
  /// and to the topic, and is valid.
  ///
  /// Made after `validate`, because only servers with registered devices need it.
  ///
  /// - Parameters:
  ///   - registered: What is registered about the token; nil for a token that is not registered.
  ///   - certificate: The connection's client certificate; nil in token mode.
  ///   - now: The server's clock, in milliseconds since 1970.
  package func checkDevice(
    _ registered: RegisteredToken?, of request: HTTPRequest, certificate: ProviderCertificate?, now: ServerTime,
    verdict: inout Verdict
  ) {
    guard verdict.isAccepted, verdict.facts.deviceToken != nil else { return }
    guard let registered else {
      if requiresRegisteredDevices { verdict.reject(Self.unknownDevice) }
      return
    }
    if let topic = verdict.facts.topic {
      request.headers.bytes.withUnsafeBytes {
        check(registered, $0[topic], certificate, now: now, verdict: &verdict)
      }
    } else {
      Array((certificate?.defaultTopic ?? "").utf8).withUnsafeBytes {
        check(registered, $0, certificate, now: now, verdict: &verdict)
      }
    }
  }

  private func check(
    _ registered: RegisteredToken, _ topic: UnsafeRawBufferPointer, _ certificate: ProviderCertificate?,
    now: ServerTime,
    verdict: inout Verdict
  ) {
    do throws(Rejection) {
      try checkEnvironment(of: registered)
      try checkTopics(of: registered, topic, certificate)
      try checkStatus(of: registered, now: now)
    } catch {
      verdict.reject(error)
    }
  }

  // The reason is that of a token of the other environment: APNs does not distinguish them (Protocol.md, section 7.2).
  private static let unknownDevice = Rejection(.deviceEnvironment, .badDeviceToken) { facts, packed in
    "\(Explanation.deviceToken(facts, packed)) is not registered, and --devices known accepts registered tokens only: "
      + "add it to the fixtures"
  }

  private func checkEnvironment(of registered: RegisteredToken) throws(Rejection) {
    guard let other = registered.environment, other != environment else { return }
    throw Rejection(.deviceEnvironment, .badDeviceToken) { [environment] facts, packed in
      let fault =
        registered.isRegisteredByUpstream
        ? "is not of \(environment.rawValue), as upstream answered before"
        : "is of \(other.rawValue), this is \(environment.rawValue)"
      return "\(Explanation.deviceToken(facts, packed)) \(fault): push it through the other environment"
    }
  }

  /// A token belongs to one topic. It is not known which reason APNs gives for a token on another topic of its own app:
  /// we give `TopicDisallowed` where the topic lacks the suffix of the token's push type, else
  /// `DeviceTokenNotForTopic`.
  private func checkTopics(
    of registered: RegisteredToken, _ topic: UnsafeRawBufferPointer, _ certificate: ProviderCertificate?
  ) throws(Rejection) {
    let expected: String
    var reason = Reason.deviceTokenNotForTopic
    switch registered.topics {
    case .any: return
    case .exactly(let exact):
      if topic.equals(text: exact) { return }
      expected = exact
    case .app(let bundleID, let kind):
      let expectedSuffix = kind.row.suffix
      if topic.hasSuffix(expectedSuffix),
        topic.part(0..<topic.count - expectedSuffix.utf8CodeUnitCount).equals(text: bundleID)
      {
        return
      }
      let suffix = PushType(suffixOf: topic)?.topicSuffix ?? ""
      let isOfApp = topic.part(0..<topic.count - suffix.utf8.count).equals(text: bundleID)
      if isOfApp, suffix.isEmpty { reason = .topicDisallowed }
      expected = bundleID + kind.topicSuffix
    }
    throw Rejection(.deviceTopic, reason) { facts, packed in
      let token = Explanation.deviceToken(facts, packed)
      let topic = Explanation.topic(facts.topic, certificate, packed)
      return registered.isRegisteredByUpstream
        ? "\(token) does not belong to the apns-topic \(topic), as upstream answered before"
        : "\(token) belongs to \(Explanation.quoted(expected)), apns-topic is \(topic)"
    }
  }

  private func checkStatus(of registered: RegisteredToken, now: ServerTime) throws(Rejection) {
    switch registered.status {
    case .active: return
    case .expired(let since):
      throw Rejection(
        .deviceExpired, .expiredToken, timestamp: since,
        detail: .ofTimestamp { facts, packed, since in
          "\(Explanation.deviceToken(facts, packed)) expired at \(Explanation.timestamp(since)). "
            + "Delete it unless the app has registered it again."
        })
    case .unregistered(let since):
      guard now >= since.addingClamped(times.unregisteredAfter) else { return }
      throw Rejection(
        .deviceUnregistered, .unregistered, timestamp: since,
        detail: registered.isFromUpstream
          ? .ofTimestamp { Self.unregistered($0, $1, $2, ", as upstream answered before") }
          : .ofTimestamp { Self.unregistered($0, $1, $2, "") })
    }
  }

  private static func unregistered(
    _ facts: PushFacts, _ packed: UnsafeRawBufferPointer, _ since: ServerTime, _ origin: String
  ) -> String {
    "\(Explanation.deviceToken(facts, packed)) has been unregistered since \(Explanation.timestamp(since))\(origin). "
      + "Delete it unless the app has registered it again."
  }
}

extension Explanation {
  /// The device token in explanations: its first and last digits.
  fileprivate static func deviceToken(_ facts: PushFacts, _ packed: UnsafeRawBufferPointer) -> String {
    let digits = facts.deviceToken.map { packed.part($0.indices.clamped(to: packed.indices)) }
    return "device token "
      + DeviceToken.abbreviated(String(decoding: digits ?? packed.part(0..<0), as: UTF8.self).lowercased())
  }
}
