import FaultModel
internal import APNSRules

/// The fields of `when`.
enum ConditionKey: String, FileKey {
  case deviceToken = "device_token"
  case topic
  case pushType = "push_type"
  case priority
  case collapseID = "collapse_id"
  case apnsID = "apns_id"
  case payload, header, size
  case providerToken = "jwt"
  case client, address, listener, age, idle
  case serverName = "sni"
  case certificate, attempt, status, reason
  case query = "q"
  case not

  static let schemaName = "condition"

  var shape: ValueSyntax {
    switch self {
    case .deviceToken, .topic, .collapseID, .apnsID, .client, .address, .serverName, .certificate: .match(.text([]))
    case .pushType: .match(.text(PushType.allCases.map(\.text)))
    case .reason: .match(.text(Reason.allCases.map(\.text)))
    case .priority, .size, .listener, .attempt, .status: .match(.number)
    case .age, .idle: .match(.duration)
    case .payload: .named(.match(.json))
    case .header: .named(.match(.text([])))
    case .providerToken: .map(ProviderTokenKey.self)
    case .query: .text
    case .not: .either(.map(ConditionKey.self), .list(.map(ConditionKey.self)))
    }
  }

  var about: String {
    switch self {
    case .deviceToken: "The device token, in any case. Quote it: YAML reads some as numbers."
    case .topic: "apns-topic, or the only topic of the provider certificate."
    case .pushType: "apns-push-type."
    case .priority: "apns-priority; 10 if absent."
    case .collapseID: "apns-collapse-id."
    case .apnsID: "apns-id as the client sent it."
    case .payload: "Values of the payload by JSON pointer: /aps/alert/title."
    case .header: "Header fields by name."
    case .size: "The size of the payload in bytes."
    case .providerToken: "The provider token."
    case .client: "The client's address, without its port."
    case .address: "The client's IP address: an address, a CIDR block such as 10.0.0.0/8, or a pattern with *."
    case .age: "The time since the connection was accepted; only at connection."
    case .idle: "The time since the client last sent anything; only at connection."
    case .listener: "The index of the APNs listener, from 0."
    case .serverName: "The host name the client asked for in its TLS handshake."
    case .certificate: "The UID of the client certificate."
    case .attempt: "The number of the attempt of this push, from 1."
    case .status: "The status of the response; only at response."
    case .reason: "The reason of the response; only at response."
    case .query: "An inbox query such as topic:com.acme.* !type:background; only with fields of the request."
    case .not: "Excluded traffic: one condition, or a list of conditions of which none may hold."
    }
  }
}

/// The fields of `jwt`, the provider token in a condition.
enum ProviderTokenKey: String, FileKey {
  case age
  case teamID = "team_id"
  case keyID = "key_id"

  static let schemaName = "provider_token"

  var shape: ValueSyntax {
    switch self {
    case .age: .match(.duration)
    case .teamID, .keyID: .match(.text([]))
    }
  }

  var about: String {
    switch self {
    case .age: "The time since it was issued."
    case .teamID: "Its team id (iss)."
    case .keyID: "Its key id (kid)."
    }
  }
}

/// The keys of a requirement that is written as a map.
enum MatchKey: String, FileKey {
  case equals, prefix, glob
  case oneOf = "in"
  case present
  case above = "gt"
  case below = "lt"

  static let schemaName = "match"

  var shape: ValueSyntax {
    switch self {
    case .equals, .above, .below: .scalar
    case .prefix, .glob: .text
    case .oneOf: .list(.scalar)
    case .present: .flag
    }
  }

  var about: String {
    switch self {
    case .equals: "Exactly this value."
    case .prefix: "A string with this prefix."
    case .glob: "A pattern in which * matches any text."
    case .oneOf: "One of these."
    case .present: "Whether there is a value."
    case .above: "More than this."
    case .below: "Less than this."
    }
  }
}
