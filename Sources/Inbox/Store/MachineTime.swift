#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// The machine's monotonic clock, which changes of the system time do not affect.
public enum MachineTime {
  /// Nanoseconds since an unspecified start.
  public static var nanoseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
