internal import CMemory

/// Asks for memory before it is needed, so that it comes from afar while there is other work.
enum CacheLines {
  private static let size = 64

  /// Bytes that are going to be read.
  @inline(__always)
  static func prefetch(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    var offset = 0
    while offset < bytes.count {
      apns_prefetch_for_reading(start + offset)
      offset += size
    }
  }

  /// Bytes that are going to be written to.
  @inline(__always)
  static func prefetchForWriting(_ start: UnsafeMutableRawPointer, count: Int) {
    var offset = 0
    while offset < count {
      apns_prefetch_for_writing(start + offset)
      offset += size
    }
  }
}
