/// How often a rule fires for traffic that its condition holds for: the word `trigger`. All of its parts must agree.
///
/// Counting begins at 1 and is apart for each rule and each value of `countKey`. A push whose condition does not hold is
/// not counted. Times here go by the machine's monotonic clock.
public struct Trigger: Sendable, Equatable {
  /// Of what a draw or a count is: two pushes with the same key share it.
  public enum Key: String, CaseIterable, Sendable {
    /// The rule alone: one count for all traffic.
    case rule
    /// The attempt: push key and attempt number. For draws only.
    case attempt
    /// The push key. A count by it is the attempt number, which begins anew after an accepted attempt.
    case push
    case deviceToken = "device_token"
    case topic
    /// The connection's number.
    case connection
    /// The client's address, without its port.
    case client
  }

  /// How likely it is.
  public enum Probability: Sendable, Equatable {
    /// Always the same, from 0 to 1; these two are exact and draw nothing.
    case fixed(Double)
    /// From one to another within a time after the profile was activated, then as at its end.
    case ramp(from: Double, to: Double, over: Duration)
  }

  /// A token bucket: fires for what does not fit.
  public struct Rate: Sendable, Equatable {
    /// How many pushes per `per`, above 0.
    public var limit: Double
    /// In which time, longer than 0.
    public var per: Duration
    /// How many may come at once, at least 1.
    public var burst: Double
    /// Whose rate it is.
    public var key: Key

    /// A bucket that fills with `limit` tokens each `per` and holds `burst`.
    public init(limit: Double, per: Duration, burst: Double, key: Key) {
      self.limit = limit
      self.per = per
      self.burst = burst
      self.key = key
    }
  }

  /// When, counted from the activation of the profile or the rule.
  public struct Window: Sendable, Equatable {
    /// It opens after this time; with `every` nil, once.
    public var after: Duration
    /// How long it stays open; nil for ever.
    public var length: Duration?
    /// It opens again each time this much has passed; the first time after `after`, or after `every` if `after` is zero.
    public var every: Duration?

    /// A window; by default one that is open from the beginning and for ever.
    public init(after: Duration = .zero, length: Duration? = nil, every: Duration? = nil) {
      self.after = after
      self.length = length
      self.every = every
    }
  }

  /// How likely; nil always fires.
  public var probability: Probability?
  /// Whose draw it is. A draw by `attempt` is made anew for each attempt, one by another key is made once and stays.
  public var drawKey: Key
  /// Only the first so many, counted after `after`.
  public var first: Int?
  /// Not the first so many.
  public var after: Int?
  /// Only each so-many-th, counted after `after`.
  public var every: Int?
  /// At most so many injections.
  public var times: Int?
  /// By what `first`, `after`, `every` and `times` count.
  public var countKey: Key
  /// Only what is over a rate.
  public var overLimit: Rate?
  /// Only while a window is open.
  public var window: Window?
  /// Only once so many streams were opened on the connection.
  public var afterStreams: Int?
  /// At most so many pushes held by this rule at once.
  public var maxActive: Int?

  /// A trigger that fires each time.
  public init(
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
