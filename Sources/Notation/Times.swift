/// A time by the server's clock, which tests can set: milliseconds since 1970.
package typealias ServerTime = Int64

/// A time by the machine's monotonic clock, which nothing sets: nanoseconds since an unspecified start.
package typealias MonotonicTime = Int64
