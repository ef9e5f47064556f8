internal import CNghttp2

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// Where the memory of one nghttp2 session comes from: `malloc`, but for two large parts that an idle connection need not
/// own. To be kept until the session is deleted.
///
/// - The 16 KB in which a frame is put together hold something only while `nghttp2_session_mem_send` works and until what it
///   returned was copied, between which no other session of the thread has a turn: these share one block.
/// - The table of streams is a page of its own, which takes memory when the first stream comes.
final class SessionMemory {
  /// A frame of HTTP/2's smallest limit, its header, and some room for what another version may put around it.
  static let frameSize = (16 << 10) + 64
  /// nghttp2's table for its first 256 streams.
  private static let tableSize = 4096
  /// Where pages are larger, one for a table is too much.
  private static let arePagesSmall = sysconf(Int32(_SC_PAGESIZE)) == tableSize

  private let pool: RequestStreamPool
  private let block: UnsafeMutableRawPointer
  /// The session is being made. Only then the block is given, once: frames larger than it take further ones, which keep
  /// their content from one call to the next.
  private var isBlockFree = false
  private var table: UnsafeMutableRawPointer?

  /// - Parameter pool: shared by the sessions of one thread.
  init(pool: RequestStreamPool) {
    self.pool = pool
    block = pool.frameBlock
  }

  /// What `make` makes of this memory: one session.
  func lend<Result>(_ make: (inout nghttp2_mem) -> Result) -> Result {
    var memory = nghttp2_mem(
      mem_user_data: Unmanaged.passUnretained(self).toOpaque(),
      malloc: { size, _ in malloc(size) },
      free: { pointer, user in
        if let pointer, SessionMemory.with(user, { $0.takeBack(pointer) }) != true { free(pointer) }
      },
      calloc: { count, size, user in
        SessionMemory.with(user) { $0.takeTable(count * size) } ?? calloc(count, size)
      },
      realloc: { pointer, size, user in
        guard let pointer else {
          // nghttp2 takes its buffers by this.
          return SessionMemory.with(user) { $0.takeBlock(size) } ?? malloc(size)
        }
        guard let known = SessionMemory.with(user, { $0.size(of: pointer) }) else { return realloc(pointer, size) }
        guard let moved = malloc(size) else { return nil }
        moved.copyMemory(from: pointer, byteCount: min(size, known))
        _ = SessionMemory.with(user) { $0.takeBack(pointer) }
        return moved
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
    let page = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard page != MAP_FAILED else { return nil }
    table = page
    return page
  }

  /// - Returns: whether it came from here.
  private func takeBack(_ pointer: UnsafeMutableRawPointer) -> Bool {
    if pointer == table {
      munmap(pointer, Self.tableSize)
      table = nil
      return true
    }
    return pointer == block
  }

  private func size(of pointer: UnsafeMutableRawPointer) -> Int? {
    pointer == table ? Self.tableSize : pointer == block ? Self.frameSize : nil
  }
}
