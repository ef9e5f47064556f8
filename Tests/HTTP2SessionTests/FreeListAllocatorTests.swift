import Testing

@testable import APNSMockHTTP2Session

/// The allocator for nghttp2's small objects.
@Suite struct SmallBlocksTests {
  @Test func freedBlockIsReused() throws {
    let blocks = FreeListAllocator()
    let block = try #require(blocks.allocate(100))
    blocks.deallocate(block)
    #expect(blocks.freeBytes == 128)
    let larger = try #require(blocks.allocate(200))
    let same = try #require(blocks.allocate(128))
    #expect(larger != block && same == block)
    #expect(blocks.freeBytes == 0)
    for block in [larger, same] { blocks.deallocate(block) }
  }

  @Test(arguments: [1, 31, 32, 33, 1023, 1024, 1025, 100_000])
  func blocksDoNotOverlap(size: Int) throws {
    let blocks = FreeListAllocator()
    var held: [UnsafeMutableRawBufferPointer] = []
    for byte in UInt8(1)...20 {
      let start: UnsafeMutableRawPointer = try #require(blocks.allocate(size))
      let block = UnsafeMutableRawBufferPointer(start: start, count: size)
      block.initializeMemory(as: UInt8.self, repeating: byte)
      held.append(block)
      // Every second block reuses the memory of one that was returned.
      if byte % 2 == 0 { blocks.deallocate(try #require(held.remove(at: 0).baseAddress)) }
    }
    for (byte, block) in zip(UInt8(11)...20, held) { #expect(block.allSatisfy { $0 == byte }) }
    for block in held { blocks.deallocate(try #require(block.baseAddress)) }
  }

  @Test(arguments: [(10, 20), (10, 40), (100, 3000), (3000, 50), (3000, 9000)])
  func reallocationKeepsContent(from: Int, to: Int) throws {
    let blocks = FreeListAllocator()
    let block = try #require(blocks.allocate(from))
    for offset in 0..<from {
      block.storeBytes(of: UInt8(truncatingIfNeeded: offset), toByteOffset: offset, as: UInt8.self)
    }
    let resized = try #require(blocks.resize(block, to: to))
    for offset in 0..<min(from, to) {
      #expect(resized.load(fromByteOffset: offset, as: UInt8.self) == UInt8(truncatingIfNeeded: offset))
    }
    blocks.deallocate(resized)
  }

  @Test func keptMemoryIsBoundedAfterABurst() throws {
    let blocks = FreeListAllocator()
    let held = try (0..<2000).map { _ in try #require(blocks.allocate(1024)) }
    for block in held { blocks.deallocate(block) }
    #expect(blocks.freeBytes == FreeListAllocator.limit)
  }

  @Test func emptyBlockCanBeAllocated() throws {
    let blocks = FreeListAllocator()
    let block = try #require(blocks.allocate(0))
    blocks.deallocate(block)
    let another = try #require(blocks.allocate(1))
    #expect(another == block)
    blocks.deallocate(another)
  }
}
