internal import CNghttp2

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

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
  private let small: SmallBlocks
  private let block: UnsafeMutableRawPointer
  /// Whether the session is being created. The shared block is handed out only then, and once: buffers for larger
  /// frames keep their content between calls.
  @exclusivity(unchecked) private var isBlockFree = false
  @exclusivity(unchecked) private var table: UnsafeMutableRawPointer?

  /// - Parameter pool: shared by the sessions of one thread.
  init(pool: RequestStreamPool) {
    self.pool = pool
    small = pool.small
    block = pool.frameBlock
  }

  /// Calls `make` with this allocator; `make` must create one session.
  func lend<Result>(_ make: (inout nghttp2_mem) -> Result) -> Result {
    var memory = nghttp2_mem(
      mem_user_data: Unmanaged.passUnretained(self).toOpaque(),
      malloc: { size, user in SessionMemory.with(user) { $0.small.allocate(size) } },
      free: { pointer, user in
        guard let pointer else { return }
        SessionMemory.with(user) { $0.takeBack(pointer) }
      },
      calloc: { count, size, user in SessionMemory.with(user) { $0.zeros(count, size) } },
      // nghttp2 allocates its buffers by calling realloc with a null pointer.
      realloc: { pointer, size, user in
        SessionMemory.with(user) { memory in
          guard let pointer else { return memory.takeBlock(size) ?? memory.small.allocate(size) }
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

  private func takeBlock(_ size: Int) -> UnsafeMutableRawPointer? {
    guard isBlockFree, size >= 16 << 10, size <= Self.frameSize else { return nil }
    isBlockFree = false
    return block
  }

  private func takeTable(_ size: Int) -> UnsafeMutableRawPointer? {
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

  private func zeros(_ count: Int, _ size: Int) -> UnsafeMutableRawPointer? {
    let (whole, isTooMuch) = count.multipliedReportingOverflow(by: size)
    guard !isTooMuch else { return nil }
    if let table = takeTable(whole) { return table }
    let block = small.allocate(whole)
    block?.initializeMemory(as: UInt8.self, repeating: 0, count: whole)
    return block
  }

  private func takeBack(_ pointer: UnsafeMutableRawPointer) {
    if pointer == table {
      if pool.spareTable == nil { pool.spareTable = pointer } else { Self.unmapTable(pointer) }
      table = nil
    } else if pointer != block {
      small.giveBack(pointer)
    }
  }

  private func resize(_ pointer: UnsafeMutableRawPointer, to size: Int) -> UnsafeMutableRawPointer? {
    guard pointer == table || pointer == block else { return small.resize(pointer, to: size) }
    guard let moved = small.allocate(size) else { return nil }
    moved.copyMemory(from: pointer, byteCount: min(size, pointer == table ? Self.tableSize : Self.frameSize))
    takeBack(pointer)
    return moved
  }
}
