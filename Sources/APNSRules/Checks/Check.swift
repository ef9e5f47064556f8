/// The checks of a push, in the order they are made: Protocol.md, section 8.2, rows 3 to 19.
package enum Check: UInt8, CaseIterable, Comparable, Sendable {
  /// Rows 3 to 5: method, path and repeated headers.
  case method, path, duplicateHeaders
  /// Row 6: a credential is present, and a client certificate is a provider certificate.
  case credential, certificate
  /// Rows 7 to 13: the provider token and the credential the connection is bound to.
  case tokenUpdatesBlocked, providerToken, providerTokenAge, keyEnvironment, connectionTeam, relatedKey, tokenUpdates
  /// Row 14: the syntax of the `apns-` headers.
  case apnsID, expiration, priority, collapseID, pushType
  /// Row 15: the syntax of the device token.
  case deviceToken
  /// Row 16: the topic and its relation to credential, push type and priority.
  case topicPresent, topicForm, topicPermitted, topicForType, priorityForType
  /// Row 17: the body; its syntax only in `strict`.
  case payloadPresent, payloadSize, payloadSyntax
  /// Row 18: the state of the registered device.
  case deviceEnvironment, deviceTopic, deviceExpired, deviceUnregistered
  /// Row 19: the rate of pushes to one device token, if a limit is set.
  case deviceRate
  /// Made before all rows of the table: the header list is within the advertised limit. Listed only if it failed.
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
    case .deviceEnvironment: "device_environment"
    case .deviceTopic: "device_topic"
    case .deviceExpired: "device_expired"
    case .deviceUnregistered: "device_unregistered"
    case .deviceRate: "device_rate"
    case .headerListSize: "header_list_size"
    }
  }
}
