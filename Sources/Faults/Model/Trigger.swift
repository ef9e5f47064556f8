/// How often a rule fires for traffic that meets its condition: `trigger` in a profile file. All of its parts must
/// allow it.
///
/// Counts start at 1 and are separate for each rule and each value of `countKey`. A push that does not meet the
/// condition is not counted. Times are those of the machine's monotonic clock.
public struct Trigger: Sendable, Equatable {
  /// The key of a draw or a count: pushes with the same key share it.
  public enum Key: String, CaseIterable, Sendable {
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
  public enum Probability: Sendable, Equatable {
    /// A constant probability from 0 to 1; 0 and 1 need no draw.
    case fixed(Double)
    /// A linear change from one value to another in the time after activation, constant afterwards.
    case ramp(from: Double, to: Double, over: Duration)
  }

  /// A rate limit (token bucket): the rule fires for pushes above the rate.
  public struct Rate: Sendable, Equatable {
    /// The number of pushes per `per`, above 0.
    public var limit: Double
    /// The period of `limit`, longer than 0.
    public var per: Duration
    /// The maximum number of pushes at once, at least 1.
    public var burst: Double
    /// The key of the bucket.
    public var key: Key

    /// Creates a bucket that gains `limit` tokens per `per` and holds up to `burst`.
    public init(limit: Double, per: Duration, burst: Double, key: Key) {
      self.limit = limit
      self.per = per
      self.burst = burst
      self.key = key
    }
  }

  /// A time window, counted from the activation of the profile or the rule.
  public struct Window: Sendable, Equatable {
    /// The time until the window first opens. With `every` nil, it opens once.
    public var after: Duration
    /// How long the window stays open; nil for no end.
    public var length: Duration?
    /// The period after which the window opens again. If `after` is zero, it first opens after `every`.
    public var every: Duration?

    /// Creates a window; by default it is always open.
    public init(after: Duration = .zero, length: Duration? = nil, every: Duration? = nil) {
      self.after = after
      self.length = length
      self.every = every
    }
  }

  /// The probability of firing; nil always fires.
  public var probability: Probability?
  /// The key of the draw. With `attempt`, each attempt has its own draw; with any other key, the draw is made once.
  public var drawKey: Key
  /// The number of pushes to fire for, counted after the skipped ones.
  public var first: Int?
  /// The number of pushes to skip first.
  public var after: Int?
  /// The interval: fires for every n-th push, counted after the skipped ones.
  public var every: Int?
  /// The maximum number of injections.
  public var times: Int?
  /// The key by which `first`, `after`, `every` and `times` count.
  public var countKey: Key
  /// The rate above which the rule fires.
  public var overLimit: Rate?
  /// The window during which the rule fires.
  public var window: Window?
  /// The number of streams that must have been opened on the connection.
  public var afterStreams: Int?
  /// The maximum number of pushes this rule holds at once.
  public var maxActive: Int?

  /// Creates a trigger; by default it always fires.
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
