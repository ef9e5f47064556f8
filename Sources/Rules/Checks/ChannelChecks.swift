internal import APNSMockHTTPMessage
internal import APNSMockNotation

/// The checks of Protocol.md, section 8.2, for broadcasts and channel management (section 10): the app, the request id, the
/// channel id, the push type, the priority, the channel, the expiration and the body.
extension Rulebook {
  /// Makes all checks of a request with a valid credential, except the limit of channels.
  ///
  /// - Parameters:
  ///   - certificate: The connection's client certificate; nil if the request has `token`.
  ///   - token: The verified provider token.
  ///   - keys: The trusted provider keys.
  ///   - bound: The apps that were known when the connection was bound to its team.
  ///   - findChannel: Returns the storage policy of a channel of an app in this environment; nil if there is none.
  func checkChannelRequest(
    _ operation: ChannelRequest.Operation, _ request: HTTPRequest, _ facts: PushFacts,
    _ packed: UnsafeRawBufferPointer, certificate: ProviderCertificate?, token: ProviderToken?, keys: TrustedKeySet,
    bound: KnownApps?, findChannel: ChannelLookup
  ) throws(Rejection) -> ChannelRequest {
    let bundleID = try checkApp(facts, packed, certificate: certificate, token: token, keys: keys, bound: bound)
    if facts.apnsID != nil, !facts.apnsIDIsUUID { throw Self.requestIDIsNoUUID }
    guard operation.namesChannel else {
      guard operation == .create else { return ChannelRequest(operation, bundleID: bundleID) }
      let storagePolicy = try checkNewChannel(request)
      return ChannelRequest(operation, bundleID: bundleID, storagePolicy: storagePolicy)
    }
    let channelID = try checkChannelID(packed)
    if operation == .broadcast {
      try checkBroadcastType(facts, packed)
      if facts.priorityText != nil, facts.priority == 0 { throw Self.unknownBroadcastPriority }
    }
    guard let storagePolicy = findChannel(bundleID, channelID) else {
      throw Self.unknownChannel(channelID, environment)
    }
    if operation == .broadcast { try checkBroadcast(request, facts, storagePolicy) }
    return ChannelRequest(
      operation, bundleID: bundleID, channelID: channelID, storagePolicy: storagePolicy,
      expiration: operation == .broadcast ? facts.expiration : nil)
  }

  // MARK: - App

  /// The app belongs to the credential, the path has its bundle id without a suffix, and it has the broadcast
  /// capability. In this order, which is a choice of this server.
  private func checkApp(
    _ facts: PushFacts, _ packed: UnsafeRawBufferPointer, certificate: ProviderCertificate?, token: ProviderToken?,
    keys: TrustedKeySet, bound: KnownApps?
  ) throws(Rejection) -> String {
    guard let range = facts.topic else { throw Self.malformedBundleID }
    let path = packed[range]
    let type = PushType(suffixOf: path)
    let bytes = path.part(0..<path.count - (type?.topicSuffix.utf8.count ?? 0))
    guard covers(bytes, certificate: certificate, token: token, keys: keys) else {
      throw mismatch(certificate: certificate, token: token)
    }
    let team = certificate == nil ? token?.teamID : nil
    if requiresKnownTopics, let bound, !bound.contain(String(decoding: bytes, as: UTF8.self), of: team) {
      throw Self.laterApp
    }
    if type != nil { throw Self.bundleIDWithSuffix }
    guard BundleID.isWellFormed(path), mode == .lenient || !path.isMistakenTopic(of: token) else {
      throw Self.malformedBundleID
    }
    let bundleID = String(decoding: path, as: UTF8.self)
    if apps[bundleID]?.hasBroadcast == false { throw Self.noCapability }
    return bundleID
  }

  /// Whether a credential may be used for an app. An app that is not known belongs to every team, unless topics must be
  /// known.
  private func covers(
    _ bundleID: UnsafeRawBufferPointer, certificate: ProviderCertificate?, token: ProviderToken?, keys: TrustedKeySet
  ) -> Bool {
    if let certificate, !certificate.permits(bundleID) { return false }
    if let topics = token?.key?.topics, !topics.contains(where: { bundleID.equals(text: $0) }) { return false }
    let name = String(decoding: bundleID, as: UTF8.self)
    let team = certificate == nil ? token?.teamID : nil
    if let app = apps[name], let team, app.teamID != team { return keys.knows(name, asAppOf: team) }
    return !requiresKnownTopics || KnownApps(apps: apps, keys: keys).contain(name, of: team)
  }

  private func mismatch(certificate: ProviderCertificate?, token: ProviderToken?) -> Rejection {
    let requirement = requiresKnownTopics ? ", or is in no fixture, which --topics known requires" : ""
    let owner = certificate.map { "the client certificate (\(Explanation.list($0.permittedTopics)))" }
    let key = token?.key?.topics.map { "key \(token?.keyID ?? "") (\(Explanation.list($0)))" }
    let credential = owner ?? key ?? "team \(token?.teamID ?? "")"
    return Rejection(.appPermitted, .topicMismatch) { facts, packed in
      "the app \(Explanation.quoted(facts.topic, packed)) in the path is not one of \(credential)"
        + "\(requirement): bundle ids are compared exactly, also their case"
    }
  }

  private static let laterApp = Rejection(.appPermitted, .topicMismatch) { facts, packed in
    "the app \(Explanation.quoted(facts.topic, packed)) in the path was added to the team after the first request of this "
      + "connection, which fixes the team's bundle ids: open a new connection"
  }
  private static let bundleIDWithSuffix = Rejection(.bundleID, .topicDisallowed) { facts, packed in
    "the path names \(Explanation.quoted(facts.topic, packed)), a topic with the suffix of a push type: use the bundle id alone"
  }
  private static let malformedBundleID = Rejection(.bundleID, .topicDisallowed) { facts, packed in
    "the path names \(Explanation.quoted(facts.topic, packed)), which is not a bundle id"
  }
  private static let noCapability = Rejection(.broadcastCapability, .featureNotEnabled) { facts, packed in
    "the app \(Explanation.quoted(facts.topic, packed)) does not have the broadcast capability: enable it (broadcast: true in "
      + "the fixtures)"
  }

  // MARK: - Headers

  /// Apple's text on `BadMessageId` names `apns-id`, its request tables `apns-request-id`; both are checked.
  private static let requestIDIsNoUUID = Rejection(.requestID, .badMessageId) { facts, packed in
    "apns-request-id or apns-id (\(Explanation.quoted(facts.apnsID, packed))) is not a UUID: "
      + "send one as 8-4-4-4-12 hexadecimal digits, or none"
  }

  private func checkChannelID(_ packed: UnsafeRawBufferPointer) throws(Rejection) -> String {
    guard let range = packed.firstField("apns-channel-id"), !range.isEmpty else { throw Self.missingChannelID }
    let bytes = packed[range]
    guard ChannelID.isWellFormed(bytes) else {
      let value = Explanation.quoted(bytes)
      throw Rejection(.channelID, .badChannelId) { _, _ in
        "apns-channel-id \(value) is not standard base64 with padding, of at most \(ChannelID.limit) characters: send the id as "
          + "it was received, without percent-encoding"
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static let missingChannelID = Rejection(.channelID, .missingChannelId) { _, _ in
    "apns-channel-id is missing: send the id that creating the channel returned (all-channels lists the ids)"
  }

  private static func unknownChannel(_ id: String, _ environment: PushEnvironment) -> Rejection {
    Rejection(.channelRegistered, .channelNotRegistered) { _, _ in
      "the app has no channel \(Explanation.quoted(id)) in \(environment.rawValue): it was deleted, or belongs to another app or "
        + "to the other environment"
    }
  }

  /// Apple writes `Liveactivity`, `liveactivity` and `LiveActivity`; only `strict` insists on the value of the samples.
  private func checkBroadcastType(_ facts: PushFacts, _ packed: UnsafeRawBufferPointer) throws(Rejection) {
    guard let text = facts.pushTypeText else { throw Self.missingBroadcastType }
    guard facts.pushType == .liveactivity, mode != .strict || packed[text].equals("liveactivity") else {
      throw Self.otherBroadcastType
    }
  }

  private static let missingBroadcastType = Rejection(.broadcastPushType, .missingPushType) { _, _ in
    "apns-push-type is missing: send liveactivity"
  }
  private static let otherBroadcastType = Rejection(.broadcastPushType, .invalidPushType) { facts, packed in
    "apns-push-type is \(Explanation.quoted(facts.pushTypeText, packed)), a broadcast has liveactivity"
  }

  /// The expiration, which depends on the channel, and the body of a broadcast.
  private func checkBroadcast(
    _ request: HTTPRequest, _ facts: PushFacts, _ storagePolicy: StoragePolicy
  ) throws(Rejection) {
    guard facts.expirationText != nil else { throw Self.missingExpiration }
    guard let expiration = facts.expiration else { throw Self.expirationIsNoNumber }
    if storagePolicy == .none, expiration != 0 { throw Self.expirationWithoutStorage }
    guard request.bodySize > 0 else { throw Self.noBroadcastPayload }
    guard request.bodySize <= facts.payloadLimit else { throw Self.largeBody }
    guard mode == .strict, !request.hasJSONBody else { return }
    throw Self.broadcastIsNoJSON
  }

  private static let missingExpiration = Rejection(.broadcastExpiration, .badExpirationDate) { _, _ in
    "apns-expiration is missing: a broadcast needs it, 0 for devices that are online now (@parse/node-apn omits it unless expiry "
      + "is set)"
  }
  private static let expirationIsNoNumber = Rejection(.broadcastExpiration, .badExpirationDate) { facts, packed in
    "apns-expiration \(Explanation.quoted(facts.expirationText, packed)) is not a UNIX time: send whole seconds as digits, or 0"
  }
  private static let expirationWithoutStorage = Rejection(.broadcastExpiration, .badExpirationDate) { facts, packed in
    "apns-expiration is \(Explanation.quoted(facts.expirationText, packed)), but the channel stores nothing (policy 0): send 0"
  }
  private static let unknownBroadcastPriority = Rejection(.broadcastPriority, .badPriority) { facts, packed in
    "apns-priority \(Explanation.quoted(facts.priorityText, packed)) is not one of 10, 5 and 1"
  }
  private static let noBroadcastPayload = Rejection(.payloadPresent, .payloadEmpty) { _, _ in
    "the broadcast has no body: send the payload as JSON"
  }
  private static let largeBody = Rejection(
    .payloadSize, .payloadTooLarge,
    detail: .ofBody { facts, bodySize in "the body has \(bodySize) bytes, at most \(facts.payloadLimit) are allowed" })
  private static let broadcastIsNoJSON = Rejection(.payloadSyntax, .payloadEmpty) { _, _ in
    "the body is not JSON, which rules \"strict\" reject"
  }

  // MARK: - Body of a new channel

  private func checkNewChannel(_ request: HTTPRequest) throws(Rejection) -> StoragePolicy {
    guard request.bodySize > 0 else { throw Self.noChannelBody }
    guard request.bodySize <= RequestKind.broadcastPayloadLimit else { throw Self.largeBody }
    let members: NewChannel
    do {
      members = try request.body.withUnsafeBytes { try NewChannel($0) }
    } catch {
      throw Rejection(.payloadSyntax, .badRequestPayload) { _, _ in
        "the body is not a JSON object (\(error)): send {\"message-storage-policy\":1,\"push-type\":\"LiveActivity\"}"
      }
    }
    if let unknown = members.unknown {
      throw Rejection(.requestMembers, .badRequestParams) { _, _ in
        "the body has the member \(Explanation.quoted(unknown)): only message-storage-policy and push-type are allowed"
      }
    }
    let storagePolicy = try checkStoragePolicy(members.storagePolicy)
    guard let type = members.pushType else { throw Self.missingChannelType }
    guard mode == .strict ? type == "\"LiveActivity\"" : type.lowercased() == "\"liveactivity\"" else {
      throw Rejection(.channelPushType, .invalidPushType) { _, _ in
        "push-type is \(Explanation.quoted(type)), a channel has \"LiveActivity\""
      }
    }
    return storagePolicy
  }

  /// A missing or other policy is `MissingChannelQueueSize`, which one client lists and Apple does not document
  /// (Protocol.md, section 10.3).
  private func checkStoragePolicy(_ value: String?) throws(Rejection) -> StoragePolicy {
    guard let value else { throw Self.missingPolicy }
    guard let policy = NewChannel.storagePolicy(value) else {
      throw Rejection(.storagePolicy, .missingChannelQueueSize) { _, _ in
        "message-storage-policy is \(Explanation.quoted(value)): send 0 to store nothing, or 1 to store the newest message"
      }
    }
    if mode == .strict, NewChannel.isString(value) {
      throw Rejection(.storagePolicy, .badRequestParams) { _, _ in
        "message-storage-policy is the string \(value), which rules \"strict\" reject: send a number"
      }
    }
    return policy
  }

  private static let noChannelBody = Rejection(.payloadPresent, .payloadEmpty) { _, _ in
    "the request has no body: send {\"message-storage-policy\":1,\"push-type\":\"LiveActivity\"}"
  }
  private static let missingPolicy = Rejection(.storagePolicy, .missingChannelQueueSize) { _, _ in
    "message-storage-policy is missing: send 0 to store nothing, or 1 to store the newest message"
  }
  private static let missingChannelType = Rejection(.channelPushType, .missingPushType) { _, _ in
    "push-type is missing in the body: send \"LiveActivity\""
  }
}

/// The members of the body that creates a channel, as they were sent. Null counts as absent; of several members with
/// one name the last one counts.
struct NewChannel {
  /// The JSON of `message-storage-policy`.
  private(set) var storagePolicy: String?
  /// The JSON of `push-type`.
  private(set) var pushType: String?
  /// The name of another member.
  private(set) var unknown: String?

  /// Returns whether a JSON value is a string.
  static func isString(_ value: String) -> Bool { value.hasPrefix("\"") }

  /// Returns the storage policy of a JSON value, a number or a string with the number; nil for any other value.
  static func storagePolicy(_ value: String) -> StoragePolicy? {
    switch value {
    case "0", "\"0\"": StoragePolicy.none
    case "1", "\"1\"": .newest
    default: nil
    }
  }

  /// Parses the body.
  init(_ bytes: UnsafeRawBufferPointer) throws(JSONText.Problem) {
    if let problem = JSONText.problem(in: bytes) { throw problem }
    var json = JSONReader(bytes)
    try json.object { name, value throws(JSONText.Problem) in
      let text = String(decoding: try value.verbatim(), as: UTF8.self)
      switch name {
      case "message-storage-policy": storagePolicy = text == "null" ? nil : text
      case "push-type": pushType = text == "null" ? nil : text
      default: unknown = unknown ?? name
      }
    }
  }
}
