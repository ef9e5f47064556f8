internal import APNSRules
internal import PushQuery

/// The columns of the table `push`, one row for each record; the raw values are their names.
package enum RecordColumn: String, CaseIterable, Sendable {
  case seq
  /// Milliseconds since 1970.
  case receivedAt = "received_at"
  /// Milliseconds since 1970; null while pending.
  case finishedAt = "finished_at"
  /// Monotonic nanoseconds of machine time.
  case arrivedAt = "arrived_ns"
  case kind
  case outcome
  /// 1 if APNs' rules accepted the push, else 0.
  case accepted
  /// The status of the response that was sent.
  case status
  /// The reason of the response that was sent.
  case reason
  case delivery
  case attempt
  /// The push key as a signed number.
  case pushKey = "push_key"
  case deviceToken = "device_token"
  case topic
  case pushType = "push_type"
  case priority
  case collapseID = "collapse_id"
  case apnsID = "apns_id"
  /// `client` or `server`: who generated the `apns-id`.
  case idOrigin = "id_origin"
  /// The decisive rule.
  case rule
  /// Nanoseconds from the end of the request to the response.
  case latency = "latency_ns"
  /// The size of the whole body, in bytes.
  case payloadSize = "payload_size"
  case stream
  /// The `id` in the table `connection`.
  case connection
  /// The `id` in the table `provider_token`.
  case token
  /// The raw value of `Verdict.Credential`; null without a verdict.
  case credential
  /// The applicable checks, one bit each.
  case checks
  /// The status of the verdict.
  case verdictStatus = "verdict_status"
  case failedCheck = "failed_check"
  case verdictReason = "verdict_reason"
  /// The explanation of the failed check.
  case detail
  /// The `timestamp` of a 410, in milliseconds since 1970.
  case unregisteredAt = "unregistered_at"
  /// The names of the findings of an imported record, separated by commas; null for others.
  case findings
  /// JSON: what happened beyond an ordinary response.
  case details
  /// The packed header fields; the signature of the provider token is zeros.
  case headers
  /// The kept part of the body.
  case payload

  /// The index of the column.
  package var index: Int { Self.indices[self, default: 0] }

  private static let indices = Dictionary(uniqueKeysWithValues: allCases.enumerated().map { ($1, $0) })

  /// The columns that change after a record was written.
  package static let changing: [RecordColumn] = [
    .finishedAt, .outcome, .accepted, .status, .reason, .delivery, .rule, .latency, .details,
  ]

  /// Whether the column contains numbers.
  package var isNumber: Bool {
    switch self {
    case .seq, .receivedAt, .finishedAt, .arrivedAt, .accepted, .status, .attempt, .pushKey, .priority, .latency,
      .payloadSize, .stream, .connection, .token, .credential, .checks, .verdictStatus, .unregisteredAt:
      true
    default: false
    }
  }

  /// Whether the column contains bytes that are not text.
  package var isBytes: Bool { self == .headers || self == .payload }

  /// The columns with a hash for each record.
  package enum Hashed: String, CaseIterable, Sendable {
    case deviceToken = "device_tokens"
    case pushKey = "push_keys"
    case apnsID = "apns_ids"

    var column: RecordColumn {
      switch self {
      case .deviceToken: .deviceToken
      case .pushKey: .pushKey
      case .apnsID: .apnsID
      }
    }
  }

  /// The column with the values of a field; nil if a condition on the field cannot be evaluated by one column.
  init?(_ subject: QuerySubject) {
    guard case .field(let field) = subject else { return nil }
    switch field {
    case .deviceToken: self = .deviceToken
    case .topic: self = .topic
    case .status: self = .status
    case .reason: self = .reason
    case .outcome: self = .outcome
    case .delivery: self = .delivery
    case .pushType: self = .pushType
    case .priority: self = .priority
    case .apnsID: self = .apnsID
    case .collapseID: self = .collapseID
    case .pushKey: self = .pushKey
    case .attempt: self = .attempt
    case .requestKind: self = .kind
    case .since, .until: self = .receivedAt
    case .size, .sizeGreater, .sizeLess: self = .payloadSize
    default: return nil
    }
  }
}
