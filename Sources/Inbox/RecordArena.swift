internal import CMemory
internal import Faults
internal import NIOConcurrencyHelpers
internal import Synchronization

/// Where one event loop puts what its records keep: one after the other, in slabs of memory that many share. A push then
/// costs no allocation of its own, and the memory of those that are evicted is soon written to again.
///
/// Not Sendable: it belongs to one thread. What was put into it may be read by any.
public final class RecordArena {
  /// The first slab is small, for the many inboxes that see a few pushes; each is twice as large as the one before.
  private static let firstSize = 16 << 10

  // Retained once, until the next one or deinit.
  @exclusivity(unchecked) private var slab: Unmanaged<RecordSlab>?
  @exclusivity(unchecked) private var nextSize: Int

  /// An arena that has no memory yet.
  public convenience init() { self.init(firstSize: Self.firstSize) }

  /// An arena for a single record, which takes just the memory of that.
  public static func ofOne() -> RecordArena { RecordArena(firstSize: 0) }

  private init(firstSize: Int) { nextSize = firstSize }

  deinit { slab?.release() }

  /// A slab that has `size` free bytes, retained for the one who asks: before the record is written, because behind that the
  /// processor would have to wait until the memory of the record has come.
  @inline(__always)
  func slab(withRoomFor size: Int) -> Unmanaged<RecordSlab> {
    if let slab, slab._withUnsafeGuaranteedRef({ $0.room }) >= size { return slab.retain() }
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

/// A piece of memory with the contents of records, written from front to back and given back when the last of them is gone.
final class RecordSlab: Sendable {
  /// That of a huge page: a record is written to memory that was not touched for long, and with small pages the
  /// processor would have to find out first where nearly every record is.
  static let usualCapacity = 2 << 20
  /// What was given back and waits for the next slab: fresh memory from the system would cost as much as a tenth of a
  /// push.
  // The box has a lock, and memory that lies in it is nobody's.
  nonisolated(unsafe) private static let spare = NIOLockedValueBox<[UnsafeMutableRawPointer]>([])
  /// As many as a chunk of the largest records gives back at once.
  private static let spareLimit = 2

  // Only the arena's thread writes, and only behind what was put there before. Others read what was written before they
  // got the record, by way of the inbox's lock.
  nonisolated(unsafe) private let memory: UnsafeMutableRawPointer
  private let capacity: Int
  /// How many bytes are taken. Atomic for the thread that frees the slab, which may not have seen the last records.
  private let taken = Atomic<Int>(0)
  /// What the heads refer to, each retained once and not for every record: connections, provider tokens, rejections.
  // As with the memory, only the arena's thread writes, and `taken` passes it on to the one that frees the slab.
  @exclusivity(unchecked) nonisolated(unsafe) private(set) var referents: [Unmanaged<AnyObject>] = []
  /// Those that came last, as many as one head refers to: mostly they are the next one's too.
  @exclusivity(unchecked) nonisolated(unsafe) private var recent:
    (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?)

  init(capacity: Int) {
    self.capacity = capacity
    if capacity == Self.usualCapacity {
      memory = Self.spare.withLockedValue { $0.popLast() } ?? Self.hugePage()
    } else {
      memory = .allocate(byteCount: capacity, alignment: RecordContent.alignment)
    }
  }

  private static func hugePage() -> UnsafeMutableRawPointer {
    let memory = UnsafeMutableRawPointer.allocate(byteCount: usualCapacity, alignment: usualCapacity)
    apns_prefer_huge_pages(memory, usualCapacity)
    return memory
  }

  deinit {
    // Heads are bytes like what stands behind them; only what they refer to has to be released.
    _ = taken.load(ordering: .acquiring)
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

  /// How many bytes are free.
  var room: Int { capacity - taken.load(ordering: .relaxed) }

  /// Puts a head and its injection into the free bytes, of which there have to be enough, and lets `write` fill those
  /// behind them.
  ///
  /// - Returns: where the head stands.
  @inline(__always)
  func add(
    _ head: RecordHead, _ injection: KeptInjection?, _ write: (UnsafeMutableRawBufferPointer) -> Void
  ) -> UnsafeMutablePointer<RecordHead> {
    head.forEachReferent { keep($0) }
    if let injection { keep(injection.referent) }
    let start = taken.load(ordering: .relaxed)
    let place = (memory + start).assumingMemoryBound(to: RecordHead.self)
    place.initialize(to: head)
    let rest = UnsafeMutableRawPointer(place + 1)
    if let injection { rest.initializeMemory(as: KeptInjection.self, to: injection) }
    write(UnsafeMutableRawBufferPointer(start: rest + head.injectionSize, count: head.byteCount))
    let end = start + RecordContent.size(bytes: head.size)
    taken.store(end, ordering: .releasing)
    // This memory was written to a hundred thousand pushes ago. It comes while the next push is read, which then need not
    // wait for it.
    CacheLines.prefetchForWriting(memory + end, count: min(Self.usualRecord, capacity - end))
    return place
  }

  /// Keeps what a head refers to as long as the slab.
  @inline(__always)
  private func keep(_ referent: Unmanaged<AnyObject>) {
    let address = referent.toOpaque()
    if recent.0 == address || recent.1 == address || recent.2 == address || recent.3 == address { return }
    recent = (address, recent.0, recent.1, recent.2)
    referents.append(referent.retain())
  }

  private static let usualRecord = 1536
}
