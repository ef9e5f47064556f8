internal import CAPNSMockNghttp2
internal import APNSMockPlatformLibc

/// The memory allocator of one nghttp2 session: uses the thread's small blocks, except for two large buffers that
/// an idle connection need not own. Must outlive the session.
///
/// - The 16 KB in which a frame is assembled hold data only from `nghttp2_session_mem_send` until its result is
///   copied, and no other session of the thread runs in between: these sessions share one block.
/// - The stream table is a memory page of its own, which becomes resident when the first stream is opened.
final class SessionMemory {
  /// The default maximum frame size, the frame header, and reserve for the overhead of other nghttp2 versions.
  static let frameSize = (16 << 10) + 64
  /// The size of nghttp2's table for its first 256 streams.
  private static let tableSize = 4096
  /// Whether a table fills a page; with larger pages, a page per table would waste memory.
  private static let arePagesSmall = sysconf(Int32(_SC_PAGESIZE)) == tableSize

  private let pool: RequestStreamPool
  private let small: FreeListAllocator
  private let block: UnsafeMutableRawPointer
  /// Whether the session is being created. The shared block is handed out only then, and once: buffers for larger
  /// frames keep their content between calls.
  private var isBlockFree = false
  private var table: UnsafeMutableRawPointer?

  /// - Parameter pool: Shared by the sessions of one thread.
  init(pool: RequestStreamPool) {
    self.pool = pool
    small = pool.small
    block = pool.frameBlock
  }

  /// Calls `make` with this allocator; `make` must create one session.
  func withAllocator<Result>(_ make: (inout nghttp2_mem) -> Result) -> Result {
    var memory = nghttp2_mem(
      mem_user_data: Unmanaged.passUnretained(self).toOpaque(),
      malloc: { size, user in SessionMemory.with(user) { $0.small.allocate(size) } },
      free: { pointer, user in
        guard let pointer else { return }
        SessionMemory.with(user) { $0.deallocate(pointer) }
      },
      calloc: { count, size, user in SessionMemory.with(user) { $0.allocateZeroed(count, size) } },
      // nghttp2 allocates its buffers by calling realloc with a null pointer.
      realloc: { pointer, size, user in
        SessionMemory.with(user) { memory in
          guard let pointer else { return memory.claimBlock(size) ?? memory.small.allocate(size) }
          return memory.resize(pointer, to: size)
        }
      })
    isBlockFree = true
    defer { isBlockFree = false }
    return make(&memory)
  }

  @inline(__always)
  private static func with<Result>(_ user: UnsafeMutableRawPointer?, _ body: (SessionMemory) -> Result?) -> Result? {
    guard let user else { return nil }
    return Unmanaged<SessionMemory>.fromOpaque(user)._withUnsafeGuaranteedRef(body)
  }

  private func claimBlock(_ size: Int) -> UnsafeMutableRawPointer? {
    guard isBlockFree, size >= 16 << 10, size <= Self.frameSize else { return nil }
    isBlockFree = false
    return block
  }

  private func claimTable(_ size: Int) -> UnsafeMutableRawPointer? {
    guard isBlockFree, table == nil, size == Self.tableSize, Self.arePagesSmall else { return nil }
    if let spare = pool.spareTable {
      pool.spareTable = nil
      spare.initializeMemory(as: UInt8.self, repeating: 0, count: size)
      table = spare
      return spare
    }
    let page = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard page != MAP_FAILED else { return nil }
    table = page
    return page
  }

  static func unmapTable(_ page: UnsafeMutableRawPointer) {
    munmap(page, tableSize)
  }

  private func allocateZeroed(_ count: Int, _ size: Int) -> UnsafeMutableRawPointer? {
    let (total, overflows) = count.multipliedReportingOverflow(by: size)
    guard !overflows else { return nil }
    if let table = claimTable(total) { return table }
    let block = small.allocate(total)
    block?.initializeMemory(as: UInt8.self, repeating: 0, count: total)
    return block
  }

  private func deallocate(_ pointer: UnsafeMutableRawPointer) {
    if pointer == table {
      if pool.spareTable == nil { pool.spareTable = pointer } else { Self.unmapTable(pointer) }
      table = nil
    } else if pointer != block {
      small.deallocate(pointer)
    }
  }

  private func resize(_ pointer: UnsafeMutableRawPointer, to size: Int) -> UnsafeMutableRawPointer? {
    guard pointer == table || pointer == block else { return small.resize(pointer, to: size) }
    guard let moved = small.allocate(size) else { return nil }
    moved.copyMemory(from: pointer, byteCount: min(size, pointer == table ? Self.tableSize : Self.frameSize))
    deallocate(pointer)
    return moved
  }
}

/// A free-list allocator for nghttp2's small objects, of which a push needs six. It avoids the process's allocator.
/// Measured: 5 % fewer instructions per push than with it (`Benchmarks/instructions.py --only token`).
///
/// The sessions of one event loop share it. Not Sendable: all of them are confined to one thread.
final class FreeListAllocator {
  /// Block sizes are multiples of this, up to `largest`. Larger and empty blocks come from the process's allocator.
  private static let step = 32
  private static let largest = 1024
  private static let listCount = largest / step
  /// The maximum number of free bytes that are kept, so that memory used by a burst is released.
  static let limit = 512 << 10
  /// The size of the header before each block, which holds the number of its free list, or `listCount` if it
  /// belongs to none. Sixteen bytes preserve the strictest alignment.
  private static let headSize = 16

  // The heads of the free lists, linked by a pointer in the first bytes of each block. All blocks are freed in
  // deinit.
  private let lists: UnsafeMutablePointer<UnsafeMutableRawPointer?>
  /// The number of bytes in the free lists.
  private(set) var freeBytes = 0

  init() {
    lists = .allocate(capacity: Self.listCount)
    lists.initialize(repeating: nil, count: Self.listCount)
  }

  deinit {
    for list in 0..<Self.listCount {
      while let block = lists[list] {
        lists[list] = block.load(as: UnsafeMutableRawPointer?.self)
        free(block - Self.headSize)
      }
    }
    lists.deallocate()
  }

  /// Returns an uninitialized block of `size` bytes; nil if there is no memory.
  @inline(__always)
  func allocate(_ size: Int) -> UnsafeMutableRawPointer? {
    let list = (size &+ (Self.step - 1)) / Self.step &- 1
    guard list >= 0, list < Self.listCount, let block = lists[list] else { return make(size, list) }
    lists[list] = block.load(as: UnsafeMutableRawPointer?.self)
    freeBytes &-= (list &+ 1) &* Self.step
    return block
  }

  /// Deallocates a block that this allocator returned.
  @inline(__always)
  func deallocate(_ block: UnsafeMutableRawPointer) {
    let list = Self.list(of: block)
    guard list < Self.listCount, freeBytes < Self.limit else { return free(block - Self.headSize) }
    block.storeBytes(of: lists[list], as: UnsafeMutableRawPointer?.self)
    lists[list] = block
    freeBytes &+= (list &+ 1) &* Self.step
  }

  /// Returns a block of another size with the same content; nil, leaving the old block unchanged, if there is no
  /// memory.
  func resize(_ block: UnsafeMutableRawPointer, to size: Int) -> UnsafeMutableRawPointer? {
    let list = Self.list(of: block)
    guard list < Self.listCount else {
      return realloc(block - Self.headSize, Self.headSize + size).map { $0 + Self.headSize }
    }
    let capacity = (list + 1) * Self.step
    if size <= capacity { return block }
    guard let larger = allocate(size) else { return nil }
    larger.copyMemory(from: block, byteCount: capacity)
    deallocate(block)
    return larger
  }

  private func make(_ size: Int, _ list: Int) -> UnsafeMutableRawPointer? {
    let isListed = list < Self.listCount
    let list = max(list, 0)
    guard let start = malloc(Self.headSize + (isListed ? (list + 1) * Self.step : size)) else { return nil }
    start.storeBytes(of: isListed ? list : Self.listCount, as: Int.self)
    return start + Self.headSize
  }

  @inline(__always)
  private static func list(of block: UnsafeMutableRawPointer) -> Int {
    (block - headSize).load(as: Int.self)
  }
}
