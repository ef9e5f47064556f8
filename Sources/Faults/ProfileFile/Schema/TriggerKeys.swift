import FaultModel

/// The fields of `trigger`.
enum TriggerKey: String, FileKey {
  case probability
  case drawPer = "draw_per"
  case first, after, every, times
  case timesPer = "times_per"
  case overLimit = "over_limit"
  case window
  case afterStreams = "after_streams"
  case maxActive = "max_active"

  static let schemaName = "trigger"

  var shape: ValueSyntax {
    switch self {
    case .probability: .either(.probability, .map(ProbabilityKey.self))
    case .drawPer: .word(Trigger.Key.allCases.map(\.rawValue))
    case .timesPer: .word(Trigger.Key.counting.map(\.rawValue))
    case .first, .every, .times, .afterStreams, .maxActive: .whole(1...Int.max)
    case .after: .whole(0...Int.max)
    case .overLimit: .map(RateKey.self)
    case .window: .map(WindowKey.self)
    }
  }

  var about: String {
    switch self {
    case .probability: "The probability of firing, constant or as a ramp. Default: 1."
    case .drawPer:
      "The scope of the random draw: each attempt, or once per push, token, topic, connection or client. Default: attempt."
    case .first: "Fire only for the first n pushes, counted after the skipped ones."
    case .after: "Skip the first n pushes."
    case .every: "Fire for every n-th push, counted after the skipped ones."
    case .times: "The maximum number of times the rule fires."
    case .timesPer: "The scope of the counts of first, after, every and times. Default: rule."
    case .overLimit: "Fire only above a rate."
    case .window: "Fire only while a time window is open."
    case .afterStreams: "Fire only after n streams were opened on the connection."
    case .maxActive: "The maximum number of pushes delayed at the same time."
    }
  }
}

extension Trigger.Key {
  /// The keys that can be counted by. An attempt cannot, because it occurs only once.
  static let counting = allCases.filter { $0 != .attempt }

  /// Whether the key is known without a push. Without a push, the attempt is an opening of the window.
  var isKnownWithoutPush: Bool {
    switch self {
    case .rule, .attempt, .connection, .client: true
    case .push, .deviceToken, .topic: false
    }
  }
}

/// The field of a varying probability.
enum ProbabilityKey: String, FileKey {
  case ramp

  static let schemaName = "probability"
  static let required = [ramp]

  var shape: ValueSyntax { .map(RampKey.self) }

  var about: String { "A linear change from one probability to another." }
}

/// The fields of `ramp`.
enum RampKey: String, FileKey {
  case from, to, over

  static let schemaName = "ramp"
  static let required = [to, over]

  var shape: ValueSyntax {
    switch self {
    case .from, .to: .probability
    case .over: .duration
    }
  }

  var about: String {
    switch self {
    case .from: "The probability at activation. Default: 0."
    case .to: "The probability at the end and afterwards."
    case .over: "The duration of the ramp."
    }
  }
}

/// The fields of `over_limit`.
enum RateKey: String, FileKey {
  case limit, per, burst, key

  static let schemaName = "rate"
  static let required = [limit]

  var shape: ValueSyntax {
    switch self {
    case .limit, .burst: .number
    case .per: .duration
    case .key: .word(Trigger.Key.counting.map(\.rawValue))
    }
  }

  var about: String {
    switch self {
    case .limit: "The number of pushes per period."
    case .per: "The period. Default: 1s."
    case .burst: "The size of a burst. Default: the limit."
    case .key: "The scope of the rate: each has its own. Default: rule."
    }
  }
}

/// The fields of `window`.
enum WindowKey: String, FileKey {
  case after
  case length = "for"
  case every

  static let schemaName = "window"

  var shape: ValueSyntax { .duration }

  var about: String {
    switch self {
    case .after: "The time from activation until the window opens. Default: 0s."
    case .length: "How long the window stays open. Default: forever."
    case .every: "The period after which the window opens again."
    }
  }
}
