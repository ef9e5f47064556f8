internal import APNSMockRules
internal import APNSMockPushQuery

/// The columns of the table `push`, one row for each record; the raw values are their positions.
package enum RecordColumn: Int, CaseIterable, Sendable {
  case seq
  /// Milliseconds since 1970.
  case receivedAt
  /// Milliseconds since 1970; null while pending.
  case finishedAt
  /// Monotonic nanoseconds of machine time.
  case arrivedAt
  case kind
  /// Follows from `decision`, `ending`, `status` and `reason`.
  case outcome
  /// 1 if APNs accepted the push, else 0; follows from `decision`.
  case accepted
  /// The status of the response that was sent.
  case status
  /// The reason of the response that was sent.
  case reason
  case delivery
  case attempt
  /// The push key as a signed number.
  case pushKey
  case deviceToken
  case topic
  case pushType
  case priority
  case collapseID
  case apnsID
  /// `client` or `server`: who generated the `apns-id`.
  case idOrigin
  /// The decisive rule.
  case rule
  /// Nanoseconds from the end of the request to the response.
  case latency
  /// The size of the whole body, in bytes.
  case payloadSize
  case stream
  /// The `id` in the table `connection`.
  case connection
  /// The `id` in the table `provider_token`.
  case token
  /// The kind of credential; null without a verdict.
  case credential
  /// The `id` in the table `check_list`: the applicable checks.
  case checks
  /// The status of the verdict.
  case verdictStatus
  case failedCheck
  case verdictReason
  /// The explanation of the failed check.
  case detail
  /// The `timestamp` of a 410, in milliseconds since 1970.
  case unregisteredAt
  /// The names of the findings of an imported record, separated by commas; null for others.
  case findings
  /// JSON: what happened beyond an ordinary response.
  case details
  /// The packed header fields; the signature of the provider token is zeros.
  case headers
  /// The kept part of the body.
  case payload
  case decision
  case ending

  /// The names of the columns, in the order of the cases.
  private static let names = [
    "seq", "received_at", "finished_at", "arrived_ns", "kind", "outcome", "accepted", "status", "reason", "delivery",
    "attempt", "push_key", "device_token", "topic", "push_type", "priority", "collapse_id", "apns_id", "id_origin",
    "rule",
    "latency_ns", "payload_size", "stream", "connection", "token", "credential", "checks", "verdict_status",
    "failed_check",
    "verdict_reason", "detail", "unregistered_at", "findings", "details", "headers", "payload", "decision", "ending",
  ]

  /// The name of the column.
  package var name: String { Self.names[rawValue] }

  /// The columns that change after a record was written.
  package static let changing: [RecordColumn] = [
    .finishedAt, .decision, .ending, .outcome, .accepted, .status, .reason, .delivery, .rule, .latency, .details,
  ]

  /// Whether the column contains numbers.
  package var isNumber: Bool {
    switch self {
    case .seq, .receivedAt, .finishedAt, .arrivedAt, .accepted, .status, .attempt, .pushKey, .priority, .latency,
      .payloadSize, .stream, .connection, .token, .checks, .verdictStatus, .unregisteredAt:
      true
    default: false
    }
  }

  /// Whether a condition on the column holds exactly if the filter's does, and no index finds its few matches.
  var isComparedExactly: Bool {
    switch self {
    case .kind, .decision, .ending, .outcome, .status, .reason, .topic, .priority, .attempt, .receivedAt: true
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
    case .decision: self = .decision
    case .ending: self = .ending
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
