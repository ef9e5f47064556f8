import APNSMockFaultModel
internal import APNSMockRules
internal import APNSMockNotation

/// The JSON Schema of profile files. Editors use it for completion and validation; checks that involve several values
/// are left to `profile lint`.
package enum ProfileSchema {
  /// The schema as JSON in one line.
  package static let text = JSONSchemaWriter.text(
    title: "Fault profile of apns-mock", path: path, root: Profile.schema.description,
    parameter: #"^\$\{[a-z0-9_]{1,64}\}$"#
  ) { schema, writer in
    schema.require(Condition.schema.description)
    writer.name(MatchKey.description.name)
    schema.write(MatchKey.description, to: &writer)
    writer.objectMember("apns") { writer in
      writer.member("type", ["object", "null"])
      writer.member("additionalProperties", false)
      writer.objectMember("properties") { writer in
        for setting in APNSSetting.allCases {
          writer.objectMember(setting.rawValue) { writer in
            writer.member("description", setting.summary.replacing("`", with: ""))
            schema.writeMembers(of: .scalar, to: &writer)
          }
        }
      }
    }
    for subject in [Condition.Subject.topic, .address, .size, .tokenAge, .payload(pointer: "")] {
      writer.objectMember(subject.matcher.name) { writeRequirement(subject.matchKeys, schema, to: &$0) }
    }
    for (name, weight) in [("action", nil), ("choice", SchemaParser.weightField)] {
      writer.name(name)
      let fields = Action.Name.allCases.map { FieldDescription($0.rawValue, $0.schema.form, $0.summary) }
      schema.write(MapDescription(name: name, fields: fields + [weight].compactMap(\.self)), to: &writer) { writer in
        writer.arrayMember("oneOf") { writer in
          for name in Action.Name.allCases { writer.object { $0.member("required", [name.rawValue]) } }
        }
      }
    }
  }

  /// The path under which servers publish the schema.
  package static let path = "/schema/fault-profile.json"

  /// Writes the members of a requirement that is written as a map.
  private static func writeRequirement(_ keys: [MatchKey], _ schema: JSONSchemaWriter, to writer: inout JSONWriter) {
    writer.member("type", "object")
    writer.member("minProperties", 1)
    writer.member("additionalProperties", false)
    writer.objectMember("properties") { writer in
      for key in keys {
        writer.objectMember(key.rawValue) { writer in
          writer.member("$ref", schema.reference(MatchKey.description.name) + "/properties/\(key.rawValue)")
        }
      }
    }
  }
}

extension APNSSetting {
  /// A description in one sentence of Markdown.
  var summary: String {
    switch self {
    case .tokenMaxAge: "The maximum age of a provider token."
    case .tokenFuture: "How far in the future `iat` may be."
    case .expiredTokenCloses:
      "Whether a connection gets 403 `ExpiredProviderToken` for every request after the first one, also with a new token."
    case .tokenUpdateInterval: "How long a connection must use a provider token before the next one."
    case .freeTokenUpdates: "The number of faster changes before 429 `TooManyProviderTokenUpdates`."
    case .tokenUpdateScope: "What the changes are counted for."
    case .idleTimeout: "The idle time after which a connection is closed with GOAWAY `IdleTimeout`."
    case .firstStreams: "MAX_CONCURRENT_STREAMS of the first SETTINGS frame in token mode."
    case .maxStreams:
      "MAX_CONCURRENT_STREAMS after the first accepted provider token, and in certificate mode."
    case .throttleOn4xx: "Whether a rejection reduces MAX_CONCURRENT_STREAMS to 1 until the next accepted push."
    case .environmentKeyReason: "The reason for a key of the other environment."
    case .errorContentType: "Whether error responses have `content-type: application/json`."
    case .deviceRate: "The number of pushes to one device token in a time before 429 `TooManyRequests`."
    case .errorsBeforeGoaway: "The number of rejected pushes after which a connection is closed with GOAWAY."
    case .unregisteredAfter: "How long pushes to an unregistered device are still accepted before 410 `Unregistered`."
    case .unregisteredDelay:
      "The time between the first push accepted after an app was removed from a registered device and 410 `Unregistered`."
    case .onlineQueue:
      "Whether a push to an online device is lost if the next one arrives before the device has acknowledged it: 1 or off."
    case .acknowledgeAfter: "The time in which an online device acknowledges a push, with `online_queue`."
    case .backgroundBudget: "The number of background pushes that an app on a registered device handles in a time."
    case .liveActivityBudget:
      "The number of Live Activity updates with priority 10 that an app on a registered device handles in a time."
    case .pushToStartBudget: "The number of Live Activities that pushes can start on a registered device in a time."
    case .abandonedAfter: "The time without a further attempt after which a push has the finding `abandoned`."
    }
  }
}
