import NIOConcurrencyHelpers
package import APNSMockNotation
import APNSMockPlatformLibc
import Synchronization

/// The server's own clock, which tests can freeze and advance. It determines the age of provider tokens, update
/// intervals, 410 timestamps and record times. Events on the wire are timed by the machine's clock.
package final class ServerClock: Sendable {
  /// The modes of the clock.
  package enum Mode: String, Sendable {
    /// The clock runs, possibly ahead of or behind the machine's.
    case real
    /// The clock is stopped until it is advanced.
    case frozen
  }

  // `frozenAt` is the time of a frozen clock, or `running`. `offset` is added to the machine's time otherwise.
  private static let running = Int64.min
  private let frozenAt = Atomic<Int64>(ServerClock.running)
  private let offset = Atomic<Int64>(0)
  /// Locked during a change; what is called after it.
  private let changing = NIOLockedValueBox<(@Sendable () -> Void)?>(nil)

  /// Creates a clock that shows the machine's time.
  package init() {}

  /// Calls `body` after each change from now on.
  func whenChanged(_ body: @escaping @Sendable () -> Void) { changing.withLockedValue { $0 = body } }

  /// The current time in milliseconds since 1970, limited to the years 0 to 9999, so that it can always be
  /// formatted.
  package var now: ServerTime {
    let frozen = frozenAt.load(ordering: .relaxed)
    return frozen == Self.running ? Self.adding(Self.machineNow, offset.load(ordering: .relaxed)) : frozen
  }

  /// How far the clock is ahead of the machine's, in milliseconds; negative behind it. Changes while the clock is
  /// frozen.
  package var machineOffset: Int64 {
    let frozen = frozenAt.load(ordering: .relaxed)
    return frozen == Self.running ? offset.load(ordering: .relaxed) : frozen - Self.machineNow
  }

  /// The clock's current mode.
  package var mode: Mode {
    frozenAt.load(ordering: .relaxed) == Self.running ? .real : .frozen
  }

  /// Stops the clock at `time` (milliseconds since 1970), or at the present if nil.
  package func freeze(at time: Int64? = nil) {
    change { frozenAt.store(Self.adding(time ?? now, 0), ordering: .relaxed) }
  }

  /// Moves the clock by `duration`, forward or back, in either mode.
  package func advance(by duration: Duration) {
    let (seconds, attoseconds) = duration.components
    let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    advance(by: overflow ? (seconds < 0 ? .min : .max) : milliseconds + attoseconds / 1_000_000_000_000_000)
  }

  /// Moves the clock by `milliseconds`, forward or back, in either mode.
  package func advance(by milliseconds: Int64) {
    change {
      let frozen = frozenAt.load(ordering: .relaxed)
      if frozen == Self.running {
        // Limited to the clock's range, so that moving back takes effect at once.
        let machine = Self.machineNow
        offset.store(Self.adding(now, milliseconds) - machine, ordering: .relaxed)
      } else {
        frozenAt.store(Self.adding(frozen, milliseconds), ordering: .relaxed)
      }
    }
  }

  /// Returns the clock to the machine's time.
  package func runReal() {
    change {
      offset.store(0, ordering: .relaxed)
      frozenAt.store(Self.running, ordering: .relaxed)
    }
  }

  private func change(_ body: () -> Void) {
    changing.withLockedValue { whenChanged in
      body()
      whenChanged?()
    }
  }

  private static func adding(_ time: Int64, _ change: Int64) -> Int64 {
    let (sum, overflow) = time.addingReportingOverflow(change)
    let range = TimestampFormat.range
    return overflow
      ? (change > 0 ? range.upperBound : range.lowerBound) : min(max(sum, range.lowerBound), range.upperBound)
  }

  /// The machine's time, in milliseconds since 1970.
  package static var machineNow: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
