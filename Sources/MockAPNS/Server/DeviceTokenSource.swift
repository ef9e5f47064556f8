import APNSMockInbox
import Synchronization

/// Generates device tokens. They are repeatable for the same seed.
final class DeviceTokenSource: Sendable {
  /// The number of digits of an app's token.
  private static let digits = 64
  /// The number of digits of the token of a Live Activity.
  private static let activityDigits = 160

  /// The number of generated tokens.
  let count = Atomic<UInt64>(0)
  private let seed: UInt64
  /// The store that keeps the number.
  private let writer: RecordWriter?

  init(seed: UInt64, writer: RecordWriter?) {
    self.seed = seed
    self.writer = writer
  }

  /// Returns a new token.
  func next(ofActivity: Bool = false) -> String {
    var source = IdentifierSource(seed: seed, deviceToken: count.add(1, ordering: .relaxed).newValue)
    writer?.serverState.didChange(StateRow.generated)
    return source.hexadecimal(digits: ofActivity ? Self.activityDigits : Self.digits)
  }
}
