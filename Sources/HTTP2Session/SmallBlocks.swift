#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// Memory for nghttp2's small objects, of which it takes six for a push: blocks that were given back are handed out again,
/// without the allocator of the whole program.
///
/// The sessions of one event loop share it. Not Sendable: all of them live on one thread.
final class SmallBlocks {
  /// Blocks come in sizes that are multiples of this, up to `largest`. Others are the program's allocator's alone.
  private static let step = 32
  private static let largest = 1024
  private static let listCount = largest / step
  /// More bytes than these do not wait to be used again, so that a burst does not stay in memory.
  static let limit = 512 << 10
  /// Before each block stands the number of its list, or `listCount` for one that belongs to none. As long as the strictest
  /// alignment wants it.
  private static let headSize = 16

  // Each list goes from block to block by the pointer in the first bytes of each. All of it is freed in deinit.
  private let lists: UnsafeMutablePointer<UnsafeMutableRawPointer?>
  /// How many bytes wait in the lists.
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

  /// A block of `size` bytes with whatever was in it; nil if there is no memory.
  @inline(__always)
  func allocate(_ size: Int) -> UnsafeMutableRawPointer? {
    let list = (size &+ (Self.step - 1)) / Self.step &- 1
    guard list >= 0, list < Self.listCount, let block = lists[list] else { return make(size, list) }
    lists[list] = block.load(as: UnsafeMutableRawPointer?.self)
    kept &-= (list &+ 1) &* Self.step
    return block
  }

  /// Takes back a block that came from here.
  @inline(__always)
  func giveBack(_ block: UnsafeMutableRawPointer) {
    let list = Self.list(of: block)
    guard list < Self.listCount, kept < Self.limit else { return free(block - Self.headSize) }
    block.storeBytes(of: lists[list], as: UnsafeMutableRawPointer?.self)
    lists[list] = block
    kept &+= (list &+ 1) &* Self.step
  }

  /// A block of another size with the same content; nil, with the old one as it was, if there is no memory.
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
