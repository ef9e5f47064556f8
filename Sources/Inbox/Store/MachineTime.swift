internal import APNSMockPlatformLibc

/// The machine's monotonic clock, which changes of the system time do not affect.
package enum MachineTime {
  /// Nanoseconds since an unspecified start.
  package static var nanoseconds: Int64 { reading(of: CLOCK_MONOTONIC) }

  /// The nanoseconds since 1970.
  package static var nanosecondsSince1970: Int64 { reading(of: CLOCK_REALTIME) }

  /// The CPU time of this thread in nanoseconds.
  static var threadNanoseconds: Int64 { reading(of: CLOCK_THREAD_CPUTIME_ID) }

  private static func reading(of clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
