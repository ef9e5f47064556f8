/// What may keep a rule from firing once its condition holds, in the order it is asked.
enum TriggerPart: Int, CaseIterable, Error {
  case afterStreams, window
  /// At `connection` a rule gets one chance on each connection, or one for each opening of its window.
  case once
  case count, overLimit, probability, times
  /// A sequence whose steps are done and whose end is `pass`.
  case sequence
  case maxActive
  /// The limit of the profile.
  case profileMaxActive

  /// Its words in a profile file.
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

/// What can be said of a rule and some traffic without counting.
enum RuleLook {
  /// APNs itself rejects the push, and the rule is not for such pushes.
  case refused
  case missed(PreparedCondition.Miss)
  case stopped(TriggerPart)
  case met(Candidate)
}

/// A rule whose condition holds, with everything that the rest of its trigger asks for.
struct Candidate {
  /// When the window opened, in monotonic nanoseconds; the activation without a window.
  var opening: Int64
  var countKey: Int
  var rateKey: Int
  /// Nil without a probability.
  var probability: Double?
  /// Nil when nothing has to be drawn.
  var draw: Double?
  var drawKey: Draw.Key
  var ordinal: Int
  var now: Int64

  /// Whether the probability lets it fire.
  var isDrawn: Bool {
    guard let probability else { return true }
    return draw.map { $0 < probability } ?? (probability > 0)
  }
}
