internal import APNSMockHTTPMessage
internal import APNSMockNotation

/// The checks of the topic (Protocol.md, section 8.2): it is present, well formed, permitted by the credential, and fits the
/// push type; the priority fits the push type (sections 4.2, 5 and 13).
extension Rulebook {
  /// The maximum length of a topic in bytes: a longer one is `BadTopic` (our inference).
  package static let topicLimit = 255

  /// Makes all of these checks.
  ///
  /// - Parameters:
  ///   - topic: `apns-topic`, or else the certificate's default topic.
  ///   - certificate: The connection's client certificate; nil if the push has `token`.
  ///   - token: The verified provider token.
  ///   - keys: The trusted provider keys.
  ///   - bound: The apps that were known when the connection was bound to its team.
  func checkTopic(
    _ topic: UnsafeRawBufferPointer?, _ facts: PushFacts, certificate: ProviderCertificate?, token: ProviderToken?,
    keys: TrustedKeySet, bound: KnownApps?
  ) throws(Rejection) {
    guard let topic, !topic.isEmpty else { throw missingTopic(topic, certificate: certificate) }
    try checkForm(topic, facts, certificate: certificate)
    if let certificate {
      try checkPermission(topic, facts, certificate: certificate)
    } else {
      try checkPermission(topic, facts, token: token)
    }
    if requiresKnownTopics {
      try checkIsKnown(topic, facts, certificate: certificate, token: token, keys: keys, bound: bound)
    }
    if let type = facts.pushType {
      try checkSuffix(topic, type, facts, certificate: certificate)
      if mode == .strict, !type.documents(priority: facts.priority) {
        let (priority, isGiven) = (facts.priority, facts.priorityText != nil)
        throw Rejection(.priorityForType, .badPriority) { _, _ in
          "a push of type \(type.text) has priority \(priority)\(isGiven ? "" : " by default"), "
            + "documented is \(type == .background ? "5 alone" : "10 or 5"): set apns-priority"
        }
      }
    }
  }

  private func missingTopic(_ topic: UnsafeRawBufferPointer?, certificate: ProviderCertificate?) -> Rejection {
    if topic != nil { return Self.emptyTopic }
    guard let certificate else { return Self.noTopic }
    return Rejection(.topicPresent, .missingTopic) { facts, packed in
      "apns-topic is missing and the client certificate has several topics "
        + "(\(Explanation.list(certificate.permittedTopics))): send one of them"
        + NearHeaderField.note(on: .topic, packed) + facts.ignoredTokenNote
    }
  }

  private static let emptyTopic = Rejection(.topicPresent, .missingTopic) { _, _ in
    "apns-topic is empty: send the app's bundle id"
  }
  private static let noTopic = Rejection(.topicPresent, .missingTopic) { _, packed in
    "apns-topic is missing: with a provider token it is always needed, send the app's bundle id"
      + NearHeaderField.note(on: .topic, packed)
  }

  /// `BadTopic` only for what cannot be a bundle id (section 13, trigger of `BadTopic`).
  private func checkForm(
    _ topic: UnsafeRawBufferPointer, _ facts: PushFacts, certificate: ProviderCertificate?
  ) throws(Rejection) {
    guard topic.count <= Self.topicLimit, topic.isText(from: 0x21) else {
      throw Rejection(.topicForm, .badTopic) { facts, packed in
        "apns-topic \(Explanation.topic(facts.topic, certificate, packed)) has spaces or control characters or is over "
          + "\(Self.topicLimit) bytes: send the app's bundle id"
      }
    }
  }

  private func checkPermission(
    _ topic: UnsafeRawBufferPointer, _ facts: PushFacts, certificate: ProviderCertificate
  ) throws(Rejection) {
    if facts.pushType == .location, mode != .lenient {
      throw Self.locationWithCertificate
    }
    guard certificate.permits(topic) else {
      throw Rejection(.topicPermitted, .topicDisallowed) { facts, packed in
        "apns-topic \(Explanation.topic(facts.topic, certificate, packed)) is not in the client certificate "
          + "(\(Explanation.list(certificate.permittedTopics)))"
          + NearTopic.note(on: facts.topic, packed, among: certificate.permittedTopics) + facts.ignoredTokenNote
      }
    }
  }

  private static let locationWithCertificate = Rejection(.topicPermitted, .topicDisallowed) { facts, _ in
    "a push of type location requires a provider token, not a certificate\(facts.ignoredTokenNote)"
  }

  private func checkPermission(
    _ topic: UnsafeRawBufferPointer, _ facts: PushFacts, token: ProviderToken?
  ) throws(Rejection) {
    if facts.pushType == .mdm, mode != .lenient {
      throw Self.mdmWithToken
    }
    guard let token, let topics = token.key?.topics else {
      guard mode != .lenient, topic.isMistakenTopic(of: token) else { return }
      throw topic.first == UInt8(ascii: "<") ? Self.placeholderTopic : Self.topicWithTeamPrefix
    }
    // A topic-specific key lists bundle ids, which include their topics with push type suffixes.
    let suffix = PushType(suffixOf: topic)?.topicSuffix.utf8.count ?? 0
    let bundleID = topic.part(0..<topic.count - suffix)
    guard topics.contains(where: { topic.equals(text: $0) || bundleID.equals(text: $0) }) else {
      throw Rejection(.topicPermitted, .topicDisallowed) { facts, packed in
        "apns-topic \(Explanation.quoted(facts.topic, packed)) is not among the topics of key \(token.keyID ?? "") "
          + "(\(Explanation.list(topics)))" + NearTopic.note(on: facts.topic, packed, among: topics)
      }
    }
  }

  /// The topic is that of an app of the credential's team (`--topics known`). An app that the team gets later is an error on
  /// connections that were bound before (Protocol.md, section 3.3, documented).
  private func checkIsKnown(
    _ topic: UnsafeRawBufferPointer, _ facts: PushFacts, certificate: ProviderCertificate?, token: ProviderToken?,
    keys: TrustedKeySet, bound: KnownApps?
  ) throws(Rejection) {
    let suffix = PushType(suffixOf: topic)?.topicSuffix.utf8.count ?? 0
    let bundleID = String(decoding: topic.part(0..<topic.count - suffix), as: UTF8.self)
    let team = certificate == nil ? token?.teamID : nil
    if KnownApps(apps: apps, keys: keys).contain(bundleID, of: team) {
      guard let bound, !bound.contain(bundleID, of: team) else { return }
      throw Self.topicOfLaterApp
    }
    let received = String(decoding: topic, as: UTF8.self)
    throw Rejection(.topicPermitted, .topicDisallowed) { facts, packed in
      let note = NearTopic.note(on: received, among: knownTopics(of: team, keys: keys))
      return "apns-topic \(Explanation.topic(facts.topic, certificate, packed)) is not the topic of an app of "
        + "\(team.map { "team \($0)" } ?? "any team"), which --topics known requires: check the spelling, or add the app to the "
        + "fixtures or to the key (apns-mock key add --team-topics)\(note)"
    }
  }

  /// Returns the bundle ids and topics that a team is known to have; for a certificate, those of all teams.
  private func knownTopics(of team: String?, keys: TrustedKeySet) -> [String] {
    apps.bundleIDs(of: team, limit: NearTopic.limit) + keys.knownTopics(of: team, limit: NearTopic.limit)
  }

  private static let topicOfLaterApp = Rejection(.topicPermitted, .topicDisallowed) { facts, packed in
    "the app of apns-topic \(Explanation.quoted(facts.topic, packed)) was added to the team after the first push of this "
      + "connection, which fixes the team's bundle ids: open a new connection"
  }

  // Not BadTopic (Protocol.md, section 5, observed).
  private static let placeholderTopic = Rejection(.topicPermitted, .topicDisallowed) { facts, packed in
    "apns-topic \(Explanation.quoted(facts.topic, packed)) is a placeholder in angle brackets: "
      + "send the app's bundle id without them"
  }
  private static let topicWithTeamPrefix = Rejection(.topicPermitted, .topicDisallowed) { facts, packed in
    "apns-topic \(Explanation.quoted(facts.topic, packed)) begins with a team id: send the app's bundle id without it"
  }
  private static let mdmWithToken = Rejection(.topicPermitted, .topicDisallowed) { _, _ in
    "a push of type mdm requires the MDM certificate, not a provider token"
  }

  /// The suffix of another type is `InvalidPushType` (observed), a missing one `TopicDisallowed` (observed for
  /// VoIP).
  private func checkSuffix(
    _ topic: UnsafeRawBufferPointer, _ type: PushType, _ facts: PushFacts, certificate: ProviderCertificate?
  ) throws(Rejection) {
    let found = PushType(suffixOf: topic)
    if found == type || found == nil && !type.hasTopicSuffix { return }
    // Passes get pushes of any type (Protocol.md, section 6.5, observed).
    if found == nil, TopicOwner(topic) == .pass { return }
    if let found {
      throw Rejection(.topicForType, .invalidPushType) { facts, packed in
        "apns-topic \(Explanation.topic(facts.topic, certificate, packed)) is for type \(found.text), "
          + "apns-push-type is \(type.text), whose topic has \(type.shownSuffix)"
      }
    }
    throw Rejection(.topicForType, .topicDisallowed) { facts, packed in
      "apns-topic \(Explanation.topic(facts.topic, certificate, packed)) does not fit apns-push-type \(type.text): "
        + "add \(type.shownSuffix)"
    }
  }
}

extension PushType {
  /// The required suffix, for explanations.
  fileprivate var shownSuffix: String { hasTopicSuffix ? "the suffix \(topicSuffix)" : "no suffix" }
}

extension UnsafeRawBufferPointer {
  /// Whether a topic begins with `<` or with a team id, as after copying it from a template or from a provisioning
  /// profile.
  func isMistakenTopic(of token: ProviderToken?) -> Bool { first == UInt8(ascii: "<") || hasTeamPrefix(of: token) }

  /// Whether a topic begins with a team id and a dot: the token's team id, or any ten upper-case letters and digits
  /// before an identifier of two or more parts. (A bundle id such as `MYCOMPANY1.app` has no team prefix.)
  fileprivate func hasTeamPrefix(of token: ProviderToken?) -> Bool {
    guard count > 11, self[10] == UInt8(ascii: ".") else { return false }
    let prefix = part(0..<10)
    guard prefix.allSatisfy({ (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) }) else { return false }
    return prefix.equals(text: token?.teamID ?? "") || firstIndex(of: UInt8(ascii: "."), from: 11) != nil
  }
}

extension ProviderCertificate {
  /// Whether `topic` is in the certificate's list, or equals its subject's UID if it has none. Allocates no array,
  /// unlike `permittedTopics`.
  func permits(_ topic: UnsafeRawBufferPointer) -> Bool {
    if topics.isEmpty { return subjectUID.map { topic.equals(text: $0) } ?? false }
    return topics.contains { topic.equals(text: $0) }
  }
}
