internal import Faults

/// Where a provider's conduct begins to be wrong: each number with its reason.
enum FindingThreshold {
  /// A retry within this many nanoseconds of the failure did not wait. Apple asks for 15 minutes after a 5xx (APNS.md
  /// section 7.2); test set-ups shorten that, and a tenth of a second is less than any back-off begins with.
  static let instant: Int64 = 100_000_000
  /// What a client that had several pushes under way at once needs to take in an answer, in nanoseconds: a push that
  /// comes so soon after an answer to another one may have left before it was read.
  static let reaction: Int64 = 100_000_000
  /// Delays that differ by no more than a tenth are the same: a machine under load does not wait to the millisecond.
  static let sameDelay = 1.1
  /// A delay has grown when it is a quarter longer than the first one: linear back-off and jitter pass.
  static let grownDelay = 1.25
  /// From this many delays on none may be left that has not grown; two are only compared with each other, because one
  /// short delay by jitter proves nothing.
  static let manyDelays = 3
  /// So many connections with one push each are no accident.
  static let churnConnections = 5
  /// As long as they are opened within this many nanoseconds: a minute. APNs publishes no number (APNS.md section 1.4).
  static let churnTime: Int64 = 60_000_000_000
  /// A payload of so many hundredths of its limit is one longer name away from 413.
  static let nearLimitPercent = 90
  /// After so many nanoseconds the same push is a new one: as attempts are counted.
  static let silence = AttemptCounter.silence
}
