internal import CNghttp2

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// Memory for nghttp2's small objects, of which each push takes six: blocks that were given back are handed out again,
/// without the allocator of the whole program.
///
/// The sessions of one event loop share it. Not Sendable: all of them live on one thread.
final class SessionMemory {
  /// Small blocks come in sizes that are multiples of this, up to `largest`. Others are the program's allocator's alone.
  private static let step = 32
  private static let largest = 512
  /// More than this is not kept, so that a burst does not stay in memory.
  private static let limit = 512 << 10
  /// Before each block stands the number of its list, or `none`; as long as the strictest alignment wants it.
  private static let headSize = 16
  private static let none = -1

  // Each list goes from block to block by the pointer in the first bytes of each. Freed in deinit, as the blocks are.
  private let lists: UnsafeMutablePointer<UnsafeMutableRawPointer?>
  @exclusivity(unchecked) private var kept = 0

  init() {
    lists = .allocate(capacity: Self.largest / Self.step)
    lists.initialize(repeating: nil, count: Self.largest / Self.step)
  }

  deinit {
    for list in 0..<Self.largest / Self.step {
      while let block = lists[list] {
        lists[list] = block.load(as: UnsafeMutableRawPointer?.self)
        free(block - Self.headSize)
      }
    }
    lists.deallocate()
  }

  /// nghttp2's view of it. Sessions hold on to this object as long as they live.
  var callbacks: nghttp2_mem {
    nghttp2_mem(
      mem_user_data: Unmanaged.passUnretained(self).toOpaque(),
      malloc: { size, user in SessionMemory.with(user) { $0.allocate(size) } },
      free: { block, user in
        guard let block else { return }
        SessionMemory.with(user) { $0.giveBack(block) }
      },
      calloc: { count, size, user in
        let (whole, overflow) = count.multipliedReportingOverflow(by: size)
        guard !overflow else { return nil }
        let block = SessionMemory.with(user) { $0.allocate(whole) }
        block?.initializeMemory(as: UInt8.self, repeating: 0, count: whole)
        return block
      },
      realloc: { block, size, user in SessionMemory.with(user) { $0.resize(block, to: size) } })
  }

  @inline(__always)
  private static func with<Result>(_ user: UnsafeMutableRawPointer?, _ body: (SessionMemory) -> Result?) -> Result? {
    guard let user else { return nil }
    return Unmanaged<SessionMemory>.fromOpaque(user)._withUnsafeGuaranteedRef(body)
  }

  private func allocate(_ size: Int) -> UnsafeMutableRawPointer? {
    guard size <= Self.largest else {
      return malloc(Self.headSize + size).map { Self.block($0, of: Self.none) }
    }
    let list = max(size - 1, 0) / Self.step
    if let block = lists[list] {
      lists[list] = block.load(as: UnsafeMutableRawPointer?.self)
      kept -= (list + 1) * Self.step
      return block
    }
    return malloc(Self.headSize + (list + 1) * Self.step).map { Self.block($0, of: list) }
  }

  private func giveBack(_ block: UnsafeMutableRawPointer) {
    let list = Self.list(of: block)
    guard list != Self.none, kept < Self.limit else { return free(block - Self.headSize) }
    block.storeBytes(of: lists[list], as: UnsafeMutableRawPointer?.self)
    lists[list] = block
    kept += (list + 1) * Self.step
  }

  private func resize(_ block: UnsafeMutableRawPointer?, to size: Int) -> UnsafeMutableRawPointer? {
    guard let block else { return allocate(size) }
    let list = Self.list(of: block)
    if list == Self.none {
      return realloc(block - Self.headSize, Self.headSize + size).map { $0 + Self.headSize }
    }
    let room = (list + 1) * Self.step
    if size <= room { return block }
    guard let larger = allocate(size) else { return nil }
    larger.copyMemory(from: block, byteCount: room)
    giveBack(block)
    return larger
  }

  private static func block(_ start: UnsafeMutableRawPointer, of list: Int) -> UnsafeMutableRawPointer {
    start.storeBytes(of: list, as: Int.self)
    return start + headSize
  }

  private static func list(of block: UnsafeMutableRawPointer) -> Int {
    (block - headSize).load(as: Int.self)
  }
}
