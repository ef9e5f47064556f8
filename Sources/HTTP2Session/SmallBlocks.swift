#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// A free-list allocator for nghttp2's small objects, of which a push needs six. It avoids the process's allocator.
///
/// The sessions of one event loop share it. Not Sendable: all of them are confined to one thread.
final class SmallBlocks {
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
  @exclusivity(unchecked) private(set) var kept = 0

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
    kept &-= (list &+ 1) &* Self.step
    return block
  }

  /// Takes back a block that this allocator returned.
  @inline(__always)
  func giveBack(_ block: UnsafeMutableRawPointer) {
    let list = Self.list(of: block)
    guard list < Self.listCount, kept < Self.limit else { return free(block - Self.headSize) }
    block.storeBytes(of: lists[list], as: UnsafeMutableRawPointer?.self)
    lists[list] = block
    kept &+= (list &+ 1) &* Self.step
  }

  /// Returns a block of another size with the same content; nil, leaving the old block unchanged, if there is no
  /// memory.
  func resize(_ block: UnsafeMutableRawPointer, to size: Int) -> UnsafeMutableRawPointer? {
    let list = Self.list(of: block)
    guard list < Self.listCount else {
      return realloc(block - Self.headSize, Self.headSize + size).map { $0 + Self.headSize }
    }
    let room = (list + 1) * Self.step
    if size <= room { return block }
    guard let larger = allocate(size) else { return nil }
    larger.copyMemory(from: block, byteCount: room)
    giveBack(block)
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
