/// The checks of a request, in the order they are made: Protocol.md, section 8.2.
package enum Check: UInt8, CaseIterable, Comparable, Sendable {
  /// Method, path and repeated headers.
  case method, path, duplicateHeaders
  /// A credential is present, and a client certificate is a provider certificate.
  case credential, certificate
  /// The provider token and the credential the connection is bound to.
  case tokenUpdatesBlocked, providerToken, providerTokenAge, keyEnvironment, connectionTeam, relatedKey, tokenUpdates
  /// Broadcasts and channel management: the app in the path, the request id, the channel; the push type, the priority and
  /// the expiration of a broadcast.
  case appPermitted, bundleID, broadcastCapability, requestID, channelID, broadcastPushType, broadcastPriority,
    channelRegistered, broadcastExpiration
  /// The syntax of the `apns-` headers.
  case apnsID, expiration, priority, collapseID, pushType
  /// The syntax of the device token.
  case deviceToken
  /// The topic and its relation to credential, push type and priority.
  case topicPresent, topicForm, topicPermitted, topicForType, priorityForType
  /// The body; its syntax only in `strict`, and in the body of a new channel.
  case payloadPresent, payloadSize, payloadSyntax
  /// The members of the body of a new channel, and the number of channels.
  case requestMembers, storagePolicy, channelPushType, channelLimit
  /// The state of the registered device.
  case deviceEnvironment, deviceTopic, deviceExpired, deviceUnregistered
  /// The rate of pushes to one device token, if a limit is set.
  case deviceRate
  /// Made before all others: the header list is within the advertised limit. Listed only if it failed.
  case headerListSize

  /// Whether `one` is made before `other`.
  package static func < (one: Check, other: Check) -> Bool { one.rawValue < other.rawValue }

  /// Creates the check with this name; nil if there is none.
  package init?(named name: String) {
    guard let check = Self.named[name] else { return nil }
    self = check
  }

  private static let named = Dictionary(uniqueKeysWithValues: allCases.map { ($0.name, $0) })

  /// The name used in records, in snake_case.
  package var name: String {
    switch self {
    case .method: "method"
    case .path: "path"
    case .duplicateHeaders: "duplicate_headers"
    case .credential: "credential"
    case .certificate: "certificate"
    case .tokenUpdatesBlocked: "token_update_latch"
    case .providerToken: "provider_token"
    case .providerTokenAge: "provider_token_age"
    case .keyEnvironment: "key_environment"
    case .connectionTeam: "connection_team"
    case .relatedKey: "related_key"
    case .tokenUpdates: "token_updates"
    case .appPermitted: "app_permitted"
    case .bundleID: "bundle_id"
    case .broadcastCapability: "broadcast_capability"
    case .requestID: "request_id"
    case .channelID: "channel_id"
    case .broadcastPushType: "broadcast_push_type"
    case .channelRegistered: "channel_registered"
    case .broadcastExpiration: "broadcast_expiration"
    case .broadcastPriority: "broadcast_priority"
    case .apnsID: "apns_id"
    case .expiration: "expiration"
    case .priority: "priority"
    case .collapseID: "collapse_id"
    case .pushType: "push_type"
    case .deviceToken: "device_token"
    case .topicPresent: "topic_present"
    case .topicForm: "topic_form"
    case .topicPermitted: "topic_permitted"
    case .topicForType: "topic_for_type"
    case .priorityForType: "priority_for_type"
    case .payloadPresent: "payload_present"
    case .payloadSize: "payload_size"
    case .payloadSyntax: "payload_syntax"
    case .requestMembers: "request_members"
    case .storagePolicy: "storage_policy"
    case .channelPushType: "channel_push_type"
    case .channelLimit: "channel_limit"
    case .deviceEnvironment: "device_environment"
    case .deviceTopic: "device_topic"
    case .deviceExpired: "device_expired"
    case .deviceUnregistered: "device_unregistered"
    case .deviceRate: "device_rate"
    case .headerListSize: "header_list_size"
    }
  }
}

extension Check {
  /// The checks that are made for broadcasts and channel management only.
  package static let ofChannelRequests: Set<Check> = [
    .appPermitted, .bundleID, .broadcastCapability, .requestID, .channelID, .broadcastPushType, .channelRegistered,
    .broadcastExpiration, .broadcastPriority, .requestMembers, .storagePolicy, .channelPushType, .channelLimit,
  ]

  /// The checks that every request has: those up to the number of token updates.
  static let beforeOperation = CheckSet(allCases.filter { $0 <= .tokenUpdates })
}

extension Reason {
  /// The checks that give the reason if they fail: Protocol.md, section 8.2. Empty for a reason that only faults give.
  package var checks: [Check] {
    switch self {
    case .methodNotAllowed: [.method]
    case .badPath: [.path]
    case .duplicateHeaders: [.duplicateHeaders]
    case .missingProviderToken: [.credential]
    case .badCertificate: [.certificate]
    case .tooManyProviderTokenUpdates: [.tokenUpdatesBlocked, .tokenUpdates]
    case .invalidProviderToken: [.providerToken, .connectionTeam]
    case .expiredProviderToken: [.providerTokenAge]
    case .badEnvironmentKeyInToken, .badEnvironmentKeyIdInToken: [.keyEnvironment]
    case .unrelatedKeyIdInToken: [.relatedKey]
    case .topicMismatch: [.appPermitted]
    case .topicDisallowed: [.bundleID, .topicPermitted, .topicForType]
    case .featureNotEnabled: [.broadcastCapability]
    case .badMessageId: [.requestID, .apnsID]
    case .missingChannelId, .badChannelId: [.channelID]
    case .missingPushType: [.broadcastPushType, .channelPushType]
    case .invalidPushType: [.broadcastPushType, .pushType, .topicForType, .channelPushType]
    case .badPriority: [.broadcastPriority, .priority, .priorityForType]
    case .channelNotRegistered: [.channelRegistered]
    case .badExpirationDate: [.broadcastExpiration, .expiration]
    case .badCollapseId: [.collapseID]
    case .missingDeviceToken: [.deviceToken]
    case .badDeviceToken: [.deviceToken, .deviceEnvironment]
    case .missingTopic: [.topicPresent]
    case .badTopic: [.topicForm]
    case .payloadEmpty: [.payloadPresent, .payloadSyntax]
    case .payloadTooLarge: [.payloadSize]
    case .badRequestPayload: [.payloadSyntax]
    case .badRequestParams: [.requestMembers]
    case .missingChannelQueueSize: [.storagePolicy]
    case .cannotCreateChannelConfig: [.channelLimit]
    case .deviceTokenNotForTopic: [.deviceTopic]
    case .expiredToken: [.deviceExpired]
    case .unregistered: [.deviceUnregistered]
    case .tooManyRequests: [.deviceRate]
    case .idleTimeout, .badCertificateEnvironment, .forbidden, .internalServerError, .serviceUnavailable, .shutdown: []
    }
  }
}

extension ChannelRequest.Operation {
  /// The checks of the operation after those of the credential. The syntax of a broadcast's body is checked in `strict`
  /// only.
  var checks: CheckSet { Self.checks[self] ?? CheckSet() }

  private static let checks: [Self: CheckSet] = {
    let common: [Check] = [.appPermitted, .bundleID, .broadcastCapability, .requestID]
    let named = common + [.channelID, .channelRegistered]
    let body: [Check] = [.payloadPresent, .payloadSize, .payloadSyntax]
    return [
      .broadcast: CheckSet(named + body + [.broadcastPushType, .broadcastExpiration, .broadcastPriority]),
      .create: CheckSet(common + body + [.requestMembers, .storagePolicy, .channelPushType, .channelLimit]),
      .read: CheckSet(named), .delete: CheckSet(named), .list: CheckSet(common),
    ]
  }()
}
