internal import NIOConcurrencyHelpers
internal import Synchronization

/// Where one event loop puts what its records keep: one after the other, in slabs of memory that many share. A push then
/// costs no allocation of its own, and the memory of those that are evicted is soon written to again.
///
/// Not Sendable: it belongs to one thread. What was put into it may be read by any.
public final class RecordArena {
  /// The first slab is small, for the many inboxes that see a few pushes; each is twice as large as the one before.
  private static let firstSize = 16 << 10

  private var slab: RecordSlab?
  private var nextSize = RecordArena.firstSize

  /// An arena that has no memory yet.
  public init() {}

  /// A slab that has `size` free bytes.
  func slab(withRoomFor size: Int) -> RecordSlab {
    if let slab, slab.room >= size { return slab }
    let made = RecordSlab(capacity: max(nextSize, size))
    nextSize = min(2 * nextSize, RecordSlab.usualCapacity)
    slab = made
    return made
  }
}

/// A piece of memory with the contents of records, written from front to back and given back when the last of them is gone.
final class RecordSlab: Sendable {
  static let usualCapacity = 256 << 10
  /// What was given back and waits for the next slab: fresh memory from the system would cost as much as a tenth of a
  /// push.
  // The box has a lock, and memory that lies in it is nobody's.
  nonisolated(unsafe) private static let spare = NIOLockedValueBox<[UnsafeMutableRawPointer]>([])
  /// As many as a chunk of the largest records gives back at once.
  private static let spareLimit = 12

  // Only the arena's thread writes, and only behind what was put there before. Others read what was written before they
  // got the record, by way of the inbox's lock.
  nonisolated(unsafe) private let memory: UnsafeMutableRawPointer
  private let capacity: Int
  /// How many bytes are taken. Atomic for the thread that frees the slab, which may not have seen the last records.
  private let taken = Atomic<Int>(0)

  init(capacity: Int) {
    self.capacity = capacity
    let used = capacity == Self.usualCapacity ? Self.spare.withLockedValue { $0.popLast() } : nil
    memory = used ?? .allocate(byteCount: capacity, alignment: RecordContent.alignment)
  }

  deinit {
    let end = taken.load(ordering: .acquiring)
    var offset = 0
    while offset < end {
      let head = (memory + offset).assumingMemoryBound(to: RecordHead.self)
      offset += RecordContent.size(bytes: head.pointee.byteCount)
      head.deinitialize(count: 1)
    }
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

  /// How many bytes are free.
  var room: Int { capacity - taken.load(ordering: .relaxed) }

  /// Where the free bytes begin.
  var end: UnsafeMutableRawPointer { memory + taken.load(ordering: .relaxed) }

  /// Says that a head and its bytes were written to the first `size` free bytes.
  func take(_ size: Int) {
    let end = taken.load(ordering: .relaxed) + size
    taken.store(end, ordering: .releasing)
    // This memory was written to a hundred thousand pushes ago. It comes while the next push is read, which then need not
    // wait for it.
    CacheLines.prefetchForWriting(memory + end, count: min(Self.usualRecord, capacity - end))
  }

  private static let usualRecord = 1536
}
