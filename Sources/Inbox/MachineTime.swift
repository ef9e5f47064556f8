#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// The machine's monotonic time, which no setting of any clock moves.
public enum MachineTime {
  /// Nanoseconds from a beginning that only this machine knows.
  public static var nanoseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
