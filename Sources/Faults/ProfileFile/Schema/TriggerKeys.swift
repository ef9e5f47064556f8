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
    case .probability: "How likely, from 0 to 1, or a ramp."
    case .drawPer: "The scope of the random draw: each attempt, or once per push, token, topic, connection or client."
    case .first: "Only the first so many."
    case .after: "Not the first so many."
    case .every: "Only each so-many-th."
    case .times: "At most so many times."
    case .timesPer: "By what first, after, every and times count."
    case .overLimit: "Only what is over a rate."
    case .window: "Only while a window is open."
    case .afterStreams: "Only once so many streams were opened on the connection."
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

  var about: String { "From one probability to another." }
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
    case .from: "How likely at the activation; 0, if absent."
    case .to: "How likely at the end, and from then on."
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
    case .limit: "How many pushes."
    case .per: "In which time; 1s, if absent."
    case .burst: "The size of a burst. Default: the limit."
    case .key: "What has its own rate: each token, topic, connection or client address; the rule itself, if absent."
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
    case .after: "How long after the activation it opens."
    case .length: "How long the window stays open. Default: forever."
    case .every: "It opens again each time this has passed."
    }
  }
}
