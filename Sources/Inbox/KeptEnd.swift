internal import APNSRules

/// The result of an attempt, packed into twenty bytes; with optionals each record would be eight bytes larger. The
/// aftermath is stored elsewhere.
struct KeptEnd: Sendable {
  /// Milliseconds since 1970; `Int64.min` for nil.
  private let finished: Int64
  /// Nanoseconds; `Int64.min` for nil.
  private var latency: Int64
  /// The HTTP status; 0 for nil.
  private let status: Int16
  private let reason: Reason?
  /// The number of the outcome times two, plus one if the push was accepted.
  private let result: UInt8

  init(_ end: borrowing Record.End) {
    finished = end.finishedAt ?? .min
    latency = end.served.latencyNanoseconds ?? .min
    status = end.served.status ?? 0
    reason = end.served.reason
    result = end.outcome.number << 1 | (end.accepted ? 1 : 0)
  }

  var finishedAt: Int64? { finished == .min ? nil : finished }

  var outcome: Record.Outcome { Record.Outcome(number: result >> 1) }

  var accepted: Bool { result & 1 != 0 }

  var served: Record.Served {
    Record.Served(
      status: status == 0 ? nil : Int(status), reason: reason, latencyNanoseconds: latency == .min ? nil : latency)
  }

  /// Sets the latency if there is a response and no latency yet.
  mutating func wasAnswered(afterNanoseconds nanoseconds: Int64) {
    if status != 0, latency == .min { latency = nanoseconds }
  }
}

extension Record.Outcome {
  fileprivate var number: UInt8 {
    switch self {
    case .accepted: 0
    case .rejected: 1
    case .faulted: 2
    case .pending: 3
    case .aborted: 4
    }
  }

  fileprivate init(number: UInt8) {
    switch number {
    case 0: self = .accepted
    case 1: self = .rejected
    case 2: self = .faulted
    case 3: self = .pending
    default: self = .aborted
    }
  }
}
