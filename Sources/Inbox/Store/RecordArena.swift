internal import CAPNSMockMemory
internal import APNSMockFaultModel
internal import NIOConcurrencyHelpers
internal import Synchronization

/// Allocates the content of records for one event loop, sequentially in slabs shared by many records. A push then
/// needs no allocation of its own, and the memory of evicted records is soon reused.
///
/// Not Sendable: an arena belongs to one thread. The content written to it may be read by any thread.
package final class RecordArena {
  /// The size of the first slab in bytes. Small, because many inboxes receive few pushes; each further slab is twice
  /// as large.
  private static let firstSize = 16 << 10

  // Retained once, until it is replaced or the arena is freed.
  private var slab: Unmanaged<RecordSlab>?
  private var nextSize: Int

  /// Creates an arena without memory.
  package convenience init() { self.init(firstSize: Self.firstSize) }

  /// Creates an arena for a single record, with exactly the memory that it needs.
  package static func ofOne() -> RecordArena { RecordArena(firstSize: 0) }

  private init(firstSize: Int) { nextSize = firstSize }

  deinit { slab?.release() }

  /// Returns a slab with `size` free bytes, retained for the caller. Retaining happens before the record is written;
  /// after the write the processor would have to wait for the record's memory to load.
  @inline(__always)
  func slab(withCapacityFor size: Int) -> Unmanaged<RecordSlab> {
    if let slab, slab._withUnsafeGuaranteedRef({ $0.freeByteCount }) >= size { return slab.retain() }
    return nextSlab(atLeast: size)
  }

  private func nextSlab(atLeast size: Int) -> Unmanaged<RecordSlab> {
    slab?.release()
    let made = Unmanaged.passRetained(RecordSlab(capacity: max(nextSize, size)))
    nextSize = min(2 * nextSize, RecordSlab.usualCapacity)
    slab = made
    return made.retain()
  }
}

/// A block of memory for the contents of records, written sequentially and freed when the last of its records is
/// freed.
final class RecordSlab: Sendable {
  static let usualCapacity = 2 << 20
  /// Freed slabs kept for reuse. Measured: fresh memory from the system costs up to 10 % of CPU per push
  /// (`make bench`).
  // Protected by the lock of the box; memory in the list is not referenced elsewhere.
  nonisolated(unsafe) private static let spare = NIOLockedValueBox<[UnsafeMutableRawPointer]>([])
  /// The number of slabs that a chunk of the largest records frees at once.
  private static let spareLimit = 2

  // Only the arena's thread writes, and only behind the bytes written before. Other threads read bytes written
  // before they received the record, which the inbox's lock orders.
  nonisolated(unsafe) private let memory: UnsafeMutableRawPointer
  private let capacity: Int
  /// The number of bytes in use. Atomic for the thread that frees the slab, which may not have seen the last
  /// records.
  private let used = Atomic<Int>(0)
  /// The objects that heads refer to, retained once per slab, not per record: connections, provider tokens,
  /// rejections.
  // As with `memory`, only the arena's thread writes; `used` publishes it to the thread that frees the slab.
  nonisolated(unsafe) private(set) var referents: [Unmanaged<AnyObject>] = []
  /// The most recent referents, as many as one head has; the next record mostly has the same.
  nonisolated(unsafe) private var recent:
    (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?)

  init(capacity: Int) {
    self.capacity = capacity
    let spare = capacity == Self.usualCapacity ? Self.spare.withLockedValue { $0.popLast() } : nil
    memory = spare ?? .allocate(byteCount: capacity, alignment: RecordContent.alignment)
  }

  deinit {
    // Heads are trivial bytes; only the objects they refer to must be released.
    _ = used.load(ordering: .acquiring)
    for referent in referents { referent.release() }
    let memory = memory
    let isKept =
      capacity == Self.usualCapacity
      && Self.spare.withLockedValue { spare in
        guard spare.count < Self.spareLimit else { return false }
        spare.append(memory)
        return true
      }
    if !isKept { memory.deallocate() }
  }

  /// The number of free bytes.
  var freeByteCount: Int { capacity - used.load(ordering: .relaxed) }

  /// Writes a head and its injection into the free bytes, which must suffice, and calls `write` with the bytes
  /// behind them.
  ///
  /// - Returns: The address of the head.
  @inline(__always)
  func add(
    _ head: RecordHead, _ injection: PackedInjection?, _ write: (UnsafeMutableRawBufferPointer) -> Void
  ) -> UnsafeMutablePointer<RecordHead> {
    head.forEachReferent { keep($0) }
    if let injection { keep(injection.referent) }
    let start = used.load(ordering: .relaxed)
    let destination = (memory + start).assumingMemoryBound(to: RecordHead.self)
    destination.initialize(to: head)
    let rest = UnsafeMutableRawPointer(destination + 1)
    if let injection { rest.initializeMemory(as: PackedInjection.self, to: injection) }
    write(UnsafeMutableRawBufferPointer(start: rest + head.injectionSize, count: head.byteCount))
    let end = start + RecordContent.size(bytes: head.size)
    used.store(end, ordering: .releasing)
    // The memory of the next record is probably not cached. Prefetch it while the next push is read.
    CacheLines.prefetchForWriting(memory + end, count: min(Self.usualRecord, capacity - end))
    return destination
  }

  /// Retains an object that a head refers to for as long as the slab exists.
  @inline(__always)
  private func keep(_ referent: Unmanaged<AnyObject>) {
    let address = referent.toOpaque()
    if recent.0 == address || recent.1 == address || recent.2 == address || recent.3 == address { return }
    recent = (address, recent.0, recent.1, recent.2)
    referents.append(referent.retain())
  }

  private static let usualRecord = 1536
}

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
