/// The parts of a trigger that can keep a rule from firing after its condition holds, in the order they are checked.
enum TriggerPart: Int, CaseIterable, Error {
  case afterStreams, window
  /// At `connection`, a rule can fire once per connection, or once per opening of its window.
  case once
  case count, overLimit, probability, times
  /// The sequence is complete and ends with `pass`.
  case sequence
  case maxActive
  /// The profile's limit.
  case profileMaxActive

  /// The key or keys in a profile file.
  var name: String {
    switch self {
    case .afterStreams: TriggerKey.afterStreams.rawValue
    case .window: TriggerKey.window.rawValue
    case .once: "once per connection"
    case .count: [TriggerKey.first, .after, .every].map(\.rawValue).joined(separator: ", ")
    case .overLimit: TriggerKey.overLimit.rawValue
    case .probability: TriggerKey.probability.rawValue
    case .times: TriggerKey.times.rawValue
    case .sequence: Action.Name.sequence.rawValue
    case .maxActive: TriggerKey.maxActive.rawValue
    case .profileMaxActive: "limits.\(TriggerKey.maxActive.rawValue)"
    }
  }
}

/// The result of evaluating a rule against traffic without counting.
enum RuleLook {
  /// APNs rejects the push, and the rule applies only to accepted pushes.
  case refused
  case missed(PreparedCondition.Miss)
  case stopped(TriggerPart)
  case met(Candidate)
}

/// A rule whose condition holds, with everything needed to check the rest of its trigger.
struct Candidate {
  /// The time at which the window opened, in monotonic nanoseconds; without a window, the time of activation.
  var opening: Int64
  var countKey: Int
  var rateKey: Int
  /// Nil without a probability.
  var probability: Double?
  /// Nil if nothing was drawn.
  var draw: Double?
  var drawKey: Draw.Key
  var ordinal: Int
  var now: Int64

  /// Whether the probability allows firing.
  var isDrawn: Bool {
    guard let probability else { return true }
    return draw.map { $0 < probability } ?? (probability > 0)
  }
}
