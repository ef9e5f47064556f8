internal import CMemory

/// Prefetching of memory into the processor's cache.
enum CacheLines {
  private static let size = 64

  /// Prefetches bytes for reading.
  @inline(__always)
  static func prefetch(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    var offset = 0
    while offset < bytes.count {
      apns_prefetch_for_reading(start + offset)
      offset += size
    }
  }

  /// Prefetches bytes for writing.
  @inline(__always)
  static func prefetchForWriting(_ start: UnsafeMutableRawPointer, count: Int) {
    var offset = 0
    while offset < count {
      apns_prefetch_for_writing(start + offset)
      offset += size
    }
  }
}
