internal import Faults

/// The thresholds of findings, with their rationale.
enum FindingThreshold {
  /// A retry within this many nanoseconds of the failure counts as immediate. Apple asks for 15 minutes after a 5xx
  /// (Protocol.md, section 7.2). Test setups shorten that, but no back-off begins with less than a tenth of a
  /// second.
  static let instant: Int64 = 100_000_000
  /// The time, in nanoseconds, that a client with several pushes in flight needs to process a response: a push that
  /// arrives within it after a response to another push may have been sent before the client read the response.
  static let reaction: Int64 = 100_000_000
  /// Delays that differ by at most a tenth count as equal: a machine under load does not wait to the millisecond.
  static let sameDelay = 1.1
  /// A delay has grown if it is a quarter longer than the first one: linear back-off and jitter pass.
  static let grownDelay = 1.25
  /// With at least this many delays, all must have grown. Two delays are only compared with each other, because one
  /// short delay by jitter proves nothing.
  static let manyDelays = 3
  /// The number of connections with a single push each that count as connection churn.
  static let churnConnections = 5
  /// The nanoseconds within which these connections must be opened: one minute. APNs publishes no number
  /// (Protocol.md, section 1.4).
  static let churnTime: Int64 = 60_000_000_000
  /// The percentage of the size limit from which a payload is likely to exceed it with a longer text.
  static let nearLimitPercent = 90
  /// The nanoseconds after which the same push counts as a new one, the same as for attempt counts.
  static let silence = AttemptCounter.silence
}
