internal import APNSMockNotation

/// The reasons why APNs rejects a push or closes a connection, with their texts, statuses and meanings.
///
/// Source: Protocol.md, section 7.2. There are both `BadEnvironmentKeyInToken`, as observed on the wire, and
/// `BadEnvironmentKeyIdInToken`, as documented.
package enum Reason: UInt8, CaseIterable, Sendable {
  /// 400, Protocol.md, section 7.2.
  case badCollapseId, badDeviceToken, badExpirationDate, badMessageId, badPriority, badTopic, deviceTokenNotForTopic,
    duplicateHeaders, idleTimeout, invalidPushType, missingDeviceToken, missingTopic, payloadEmpty, topicDisallowed
  /// 403, Protocol.md, section 7.2.
  case badCertificate, badCertificateEnvironment, badEnvironmentKeyIdInToken, badEnvironmentKeyInToken,
    expiredProviderToken, forbidden, invalidProviderToken, missingProviderToken, unrelatedKeyIdInToken
  /// 404, 405, 410, 413, 429, 500 and 503, Protocol.md, section 7.2.
  case badPath, methodNotAllowed, expiredToken, unregistered, payloadTooLarge, tooManyProviderTokenUpdates,
    tooManyRequests, internalServerError, serviceUnavailable, shutdown
  /// 400 and 403 of broadcasts and channel management, Protocol.md, section 10.3.
  case badChannelId, badRequestParams, badRequestPayload, cannotCreateChannelConfig, channelNotRegistered,
    featureNotEnabled, missingChannelId, missingChannelQueueSize, missingPushType, topicMismatch

  /// The text on the wire, in `{"reason":"…"}`.
  package var text: String { row.text }
  /// The HTTP status.
  package var status: Int { row.status }
  /// When APNs sends this reason, in one line.
  package var when: String { row.when }

  /// Creates the reason with this wire text, case-sensitively; nil if there is none.
  package init?(text: String) {
    guard let found = Self.byText[text] else { return nil }
    self = found
  }

  private static let byText = Dictionary(uniqueKeysWithValues: allCases.map { ($0.text, $0) })

  private var row: (text: String, status: Int, when: String) {
    switch self {
    case .badCollapseId: ("BadCollapseId", 400, "apns-collapse-id is longer than 64 bytes")
    case .badDeviceToken: ("BadDeviceToken", 400, "the device token is malformed, unknown, or of the other environment")
    case .badExpirationDate: ("BadExpirationDate", 400, "apns-expiration is not a whole number of UNIX seconds")
    case .badMessageId: ("BadMessageId", 400, "apns-id is not a UUID")
    case .badPriority: ("BadPriority", 400, "apns-priority is not 10, 5 or 1, or not allowed for the push type")
    case .badTopic: ("BadTopic", 400, "apns-topic is malformed")
    case .deviceTokenNotForTopic: ("DeviceTokenNotForTopic", 400, "the device token belongs to another topic")
    case .duplicateHeaders: ("DuplicateHeaders", 400, "a header is repeated")
    case .idleTimeout: ("IdleTimeout", 400, "the connection was idle; in practice a GOAWAY reason")
    case .invalidPushType: ("InvalidPushType", 400, "apns-push-type is unknown or contradicts the topic's suffix")
    case .missingDeviceToken: ("MissingDeviceToken", 400, "the path has no device token after /3/device/")
    case .missingTopic: ("MissingTopic", 400, "apns-topic is needed and absent")
    case .payloadEmpty: ("PayloadEmpty", 400, "the push has no body")
    case .topicDisallowed: ("TopicDisallowed", 400, "the credential may not use this topic, or not for this push type")
    case .badCertificate: ("BadCertificate", 403, "the client certificate is not a provider certificate")
    case .badCertificateEnvironment:
      (
        "BadCertificateEnvironment", 403,
        "the client certificate is for the other environment; in practice a GOAWAY reason"
      )
    case .badEnvironmentKeyIdInToken:
      ("BadEnvironmentKeyIdInToken", 403, "the provider token's key is for the other environment (documented spelling)")
    case .badEnvironmentKeyInToken:
      ("BadEnvironmentKeyInToken", 403, "the provider token's key is for the other environment (spelling on the wire)")
    case .expiredProviderToken: ("ExpiredProviderToken", 403, "the provider token's iat is more than an hour away")
    case .forbidden: ("Forbidden", 403, "the action is not allowed; no trigger is known")
    case .invalidProviderToken:
      ("InvalidProviderToken", 403, "the provider token's form, algorithm, key, team or signature is wrong")
    case .missingProviderToken:
      ("MissingProviderToken", 403, "the request has neither a client certificate nor a provider token")
    case .unrelatedKeyIdInToken:
      ("UnrelatedKeyIdInToken", 403, "the provider token's key is not related to the connection's first key")
    case .badPath: ("BadPath", 404, "the path is none of APNs, such as /3/device/ and a device token")
    case .methodNotAllowed: ("MethodNotAllowed", 405, "the method is not POST, or not one of channel management")
    case .expiredToken: ("ExpiredToken", 410, "the device token has expired")
    case .unregistered: ("Unregistered", 410, "the device token is no longer active for the topic")
    case .payloadTooLarge: ("PayloadTooLarge", 413, "the body is over 4096 bytes, or over 5120 for VoIP and broadcasts")
    case .tooManyProviderTokenUpdates:
      ("TooManyProviderTokenUpdates", 429, "the connection's provider token changed more often than every 20 minutes")
    case .tooManyRequests: ("TooManyRequests", 429, "too many pushes in a row to one device token")
    case .internalServerError: ("InternalServerError", 500, "something went wrong inside APNs")
    case .serviceUnavailable: ("ServiceUnavailable", 503, "APNs cannot accept pushes now")
    case .shutdown: ("Shutdown", 503, "this APNs server is going away")
    case .badChannelId: ("BadChannelId", 400, "apns-channel-id is not base64, or too long")
    case .badRequestParams: ("BadRequestParams", 400, "the body of a new channel has an unknown member")
    case .badRequestPayload: ("BadRequestPayload", 400, "the body of a new channel is not a JSON object")
    case .cannotCreateChannelConfig:
      ("CannotCreateChannelConfig", 400, "the app has 10000 channels in this environment")
    case .channelNotRegistered:
      ("ChannelNotRegistered", 400, "the channel does not exist for the app in this environment")
    case .featureNotEnabled: ("FeatureNotEnabled", 400, "the app does not have the broadcast capability")
    case .missingChannelId: ("MissingChannelId", 400, "apns-channel-id is absent")
    case .missingChannelQueueSize:
      ("MissingChannelQueueSize", 400, "the body of a new channel has no valid storage policy (not documented)")
    case .missingPushType: ("MissingPushType", 400, "a broadcast or the body of a new channel has no push type")
    case .topicMismatch: ("TopicMismatch", 403, "the credential does not cover the app in the path")
    }
  }
}

/// The body of an error response: compact JSON (Protocol.md, section 7.1, observed).
extension Reason {
  /// The body as sent in responses and in the debug data of GOAWAY frames.
  package var json: String { String(decoding: body(), as: UTF8.self) }

  /// Returns the body of a rejection.
  ///
  /// - Parameter timestamp: The time in a 410, in milliseconds since 1970.
  package func body(timestamp: Int64? = nil) -> [UInt8] {
    let prepared = Self.bodies[Int(rawValue)]
    guard let timestamp else { return prepared }
    // Added to the prepared body, which is faster than writing the whole object.
    var body: [UInt8] = []
    body.reserveCapacity(prepared.count + 40)
    body += prepared[..<(prepared.count - 1)]
    body += #","timestamp":"#.utf8
    // Its digits in reverse order; a `String` costs three times as much.
    let start = body.count
    var rest = timestamp.magnitude
    repeat {
      body.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
      rest /= 10
    } while rest > 0
    if timestamp < 0 { body.append(UInt8(ascii: "-")) }
    body[start...].reverse()
    body.append(UInt8(ascii: "}"))
    return body
  }

  /// Returns the body for any reason text, including one that APNs does not use.
  package static func body(of reason: String, timestamp: Int64?) -> [UInt8] {
    var writer = JSONWriter(capacity: 64)
    writer.object { writer in
      writer.member("reason", reason)
      if let timestamp { writer.member("timestamp", timestamp) }
    }
    return writer.bytes
  }

  /// The bodies by raw value, so that a rejection need not create one.
  private static let bodies: [[UInt8]] = {
    var bodies = [[UInt8]](repeating: [], count: Int(allCases.map(\.rawValue).max() ?? 0) + 1)
    for reason in allCases { bodies[Int(reason.rawValue)] = body(of: reason.text, timestamp: nil) }
    return bodies
  }()
}
