/// One fault: its injection point, the traffic it applies to, how often it fires, its action, and whether evaluation
/// continues with later rules.
package struct Rule: Sendable, Equatable {
  /// Whether a rule also applies to pushes that APNs rejects. The names are those of a profile file; rules are always
  /// evaluated after APNs' checks.
  package enum Stage: String, CaseIterable, Sendable {
    /// The rule applies only to pushes that APNs would accept: a fault never hides a malformed push.
    case afterValidation = "after_validation"
    /// The rule also applies to pushes that APNs would reject, as in an outage.
    case beforeValidation = "before_validation"
  }

  /// What follows after a rule fired. The names are those of a profile file.
  package enum Continuation: String, CaseIterable, Sendable {
    /// Later rules are evaluated.
    case continueEvaluation = "continue"
    /// No later rule is evaluated.
    case stop
    /// No later rule is evaluated, and a push whose response is lost is forwarded to upstream. Without upstream, as `stop`.
    case forward
  }

  /// The name, unique within a profile.
  package var name: String
  /// The injection point: `at` in a profile file.
  package var injectionPoint: InjectionPoint
  /// The traffic that the rule applies to: `when` in a profile file. An empty condition holds for all traffic.
  package var condition: Condition
  /// How often the rule fires: `trigger` in a profile file. An empty trigger always fires.
  package var trigger: Trigger
  /// The action: `do` in a profile file.
  package var action: Action
  /// What follows after this rule fired: `then` in a profile file. Nil for the action's default.
  package var then: Continuation?
  /// Whether the rule also applies to pushes that APNs would reject: `stage` in a profile file.
  package var stage: Stage

  /// Creates a rule.
  package init(
    name: String, injectionPoint: InjectionPoint = .request, condition: Condition = Condition(),
    trigger: Trigger = Trigger(),
    action: Action, continues: Bool? = nil, stage: Stage = .afterValidation
  ) {
    self.name = name
    self.injectionPoint = injectionPoint
    self.condition = condition
    self.trigger = trigger
    self.action = action
    self.then = continues.map { $0 ? .continueEvaluation : .stop }
    self.stage = stage
  }

  /// Whether evaluation continues with later rules after this rule fired; nil for the action's default.
  package var continues: Bool? { then.map { $0 == .continueEvaluation } }
}

/// The point in a connection or request at which a rule is evaluated: `at` in a profile file.
package enum InjectionPoint: String, CaseIterable, Sendable {
  /// A connection was accepted and nothing was read from it yet.
  case accept
  /// The ClientHello was received, including the server name (SNI).
  case tls
  /// The TLS handshake is complete and the first SETTINGS frame is about to be sent.
  case settings
  /// A request is complete and validated, and no response was sent yet.
  case request
  /// The response is determined and not sent yet.
  case response
  /// Between pushes, on an open connection.
  case connection
}

/// How often a rule fires for traffic that meets its condition: `trigger` in a profile file. All of its parts must
/// allow it.
///
/// Counts start at 1 and are separate for each rule and each value of `countKey`. A push that does not meet the
/// condition is not counted. Times are those of the machine's monotonic clock.
package struct Trigger: Sendable, Equatable {
  /// The key of a draw or a count: pushes with the same key share it.
  package enum Key: String, CaseIterable, Sendable {
    /// The rule: one count for all traffic.
    case rule
    /// The attempt: push key and attempt number. For draws only.
    case attempt
    /// The push key. A count by it is the attempt number, which starts again at 1 after an accepted attempt.
    case push
    case deviceToken = "device_token"
    case topic
    /// The connection's number.
    case connection
    /// The client's address without its port.
    case client
  }

  /// The probability with which a rule fires.
  package enum Probability: Sendable, Equatable {
    /// A constant probability from 0 to 1; 0 and 1 need no draw.
    case fixed(Double)
    /// A linear change from one value to another in the time after activation, constant afterwards.
    case ramp(from: Double, to: Double, over: Duration)
  }

  /// A rate limit (token bucket): the rule fires for pushes above the rate.
  package struct Rate: Sendable, Equatable {
    /// The number of pushes per `per`, above 0.
    package var limit: Double
    /// The period of `limit`, longer than 0.
    package var per: Duration
    /// The maximum number of pushes at once, at least 1.
    package var burst: Double
    /// The key of the bucket.
    package var key: Key

    /// Creates a bucket that gains `limit` tokens per `per` and holds up to `burst`.
    package init(limit: Double, per: Duration, burst: Double, key: Key) {
      self.limit = limit
      self.per = per
      self.burst = burst
      self.key = key
    }
  }

  /// A time window, counted from the activation of the profile or the rule.
  package struct Window: Sendable, Equatable {
    /// The time until the window first opens. With `every` nil, it opens once.
    package var after: Duration
    /// How long the window stays open; nil for no end.
    package var length: Duration?
    /// The period after which the window opens again. If `after` is zero, it first opens after `every`.
    package var every: Duration?

    /// Creates a window; by default it is always open.
    package init(after: Duration = .zero, length: Duration? = nil, every: Duration? = nil) {
      self.after = after
      self.length = length
      self.every = every
    }
  }

  /// The probability of firing; nil always fires.
  package var probability: Probability?
  /// The key of the draw. With `attempt`, each attempt has its own draw; with any other key, the draw is made once.
  package var drawKey: Key
  /// The number of pushes to fire for, counted after the skipped ones.
  package var first: Int?
  /// The number of pushes to skip first.
  package var after: Int?
  /// The interval: fires for every n-th push, counted after the skipped ones.
  package var every: Int?
  /// The maximum number of injections.
  package var times: Int?
  /// The key by which `first`, `after`, `every` and `times` count.
  package var countKey: Key
  /// The rate above which the rule fires.
  package var overLimit: Rate?
  /// The window during which the rule fires.
  package var window: Window?
  /// The number of streams that must have been opened on the connection.
  package var afterStreams: Int?
  /// The maximum number of pushes this rule delays at once.
  package var maxActive: Int?

  /// Creates a trigger; by default it always fires.
  package init(
    probability: Probability? = nil, drawKey: Key = .attempt, first: Int? = nil, after: Int? = nil, every: Int? = nil,
    times: Int? = nil, countKey: Key = .rule, overLimit: Rate? = nil, window: Window? = nil, afterStreams: Int? = nil,
    maxActive: Int? = nil
  ) {
    self.probability = probability
    self.drawKey = drawKey
    self.first = first
    self.after = after
    self.every = every
    self.times = times
    self.countKey = countKey
    self.overLimit = overLimit
    self.window = window
    self.afterStreams = afterStreams
    self.maxActive = maxActive
  }
}
