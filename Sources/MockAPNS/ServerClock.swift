import NIOConcurrencyHelpers
import Notation
import Synchronization

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The server's own clock, which tests freeze and advance. It rules what APNs dates: age of provider tokens, update
/// intervals, 410 timestamps, record times. What happens on the wire goes by the machine's clock.
public final class ServerClock: Sendable {
  /// What the clock does now.
  public enum Mode: String, Sendable {
    /// It runs, possibly ahead of or behind the machine's.
    case real
    /// It stands still until it is advanced.
    case frozen
  }

  // `frozenAt` is what a frozen clock shows, or `running`. `offset` is what is added to the machine's time otherwise.
  private static let running = Int64.min
  private let frozenAt = Atomic<Int64>(ServerClock.running)
  private let offset = Atomic<Int64>(0)
  private let changing = NIOLockedValueBox(())

  /// A clock that shows the machine's time.
  public init() {}

  /// Milliseconds since 1970, never before the year 0 nor after 9999: every time of ours can be written down.
  public var now: Int64 {
    let frozen = frozenAt.load(ordering: .relaxed)
    return frozen == Self.running ? Self.adding(Self.machineNow, offset.load(ordering: .relaxed)) : frozen
  }

  /// Whether it runs or stands.
  public var mode: Mode {
    frozenAt.load(ordering: .relaxed) == Self.running ? .real : .frozen
  }

  /// Stops the clock at `time` (milliseconds since 1970), or at the present when nil.
  public func freeze(at time: Int64? = nil) {
    changing.withLockedValue { _ in frozenAt.store(Self.adding(time ?? now, 0), ordering: .relaxed) }
  }

  /// Moves the clock by `milliseconds`, forward or back, whether it runs or stands.
  public func advance(by milliseconds: Int64) {
    changing.withLockedValue { _ in
      let frozen = frozenAt.load(ordering: .relaxed)
      if frozen == Self.running {
        // No further than the clock can show, so that it comes back at once when it is moved back.
        let machine = Self.machineNow
        offset.store(Self.adding(now, milliseconds) - machine, ordering: .relaxed)
      } else {
        frozenAt.store(Self.adding(frozen, milliseconds), ordering: .relaxed)
      }
    }
  }

  /// Back to the machine's time.
  public func runReal() {
    changing.withLockedValue { _ in
      offset.store(0, ordering: .relaxed)
      frozenAt.store(Self.running, ordering: .relaxed)
    }
  }

  private static func adding(_ time: Int64, _ change: Int64) -> Int64 {
    let (sum, overflow) = time.addingReportingOverflow(change)
    let range = WrittenTime.range
    return overflow
      ? (change > 0 ? range.upperBound : range.lowerBound) : min(max(sum, range.lowerBound), range.upperBound)
  }

  /// The machine's time, in milliseconds since 1970.
  static var machineNow: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
