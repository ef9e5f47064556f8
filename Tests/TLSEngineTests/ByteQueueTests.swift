import Testing

@testable import APNSMockTLSEngine

/// Compares a byte queue with an array.
@Suite struct ByteQueueTests {
  @Test(arguments: 0..<8)
  func bytesComeOutInOrder(seed: Int) {
    var generator = Steps(state: UInt64(seed))
    var queue = ByteQueue()
    var expected: [UInt8] = []
    for step in 0..<2000 {
      switch Int.random(in: 0..<8, using: &generator) {
      case 0..<4:
        let new = (0..<Int.random(in: 0..<(step % 100 == 0 ? 5000 : 50), using: &generator)).map { _ in
          UInt8.random(in: .min ... .max, using: &generator)
        }
        new.withUnsafeBytes { queue.append($0) }
        expected += new
      case 4..<7:
        var room = [UInt8](repeating: 0, count: Int.random(in: 0..<120, using: &generator))
        let count = room.withUnsafeMutableBytes { queue.move(to: $0) }
        #expect(room.prefix(count) == expected.prefix(room.count))
        expected.removeFirst(count)
      default:
        if step % 10 == 0 {
          queue.removeAll()
          expected = []
        }
      }
      #expect(queue.isEmpty == expected.isEmpty)
      #expect(queue.bytes.elementsEqual(expected))
    }
  }

  /// A queue that is never quite empty does not grow.
  @Test func memoryIsBoundedByTheContent() {
    var queue = ByteQueue()
    var room = [UInt8](repeating: 0, count: 100)
    room.withUnsafeBytes { queue.append($0) }
    for _ in 0..<10_000 {
      room.withUnsafeBytes { queue.append($0) }
      #expect(room.withUnsafeMutableBytes { queue.move(to: $0) } == 100)
    }
    #expect(queue.memory.count <= 1000)
  }

  @Test func emptyInputIsAccepted() {
    var queue = ByteQueue()
    queue.append(UnsafeRawBufferPointer(start: nil, count: 0))
    #expect(queue.move(to: UnsafeMutableRawBufferPointer(start: nil, count: 0)) == 0)
    #expect(queue.isEmpty && queue.bytes.isEmpty)
  }

  /// A random number generator with the same sequence in each run.
  private struct Steps: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return (state ^ state >> 33) &* 0xFF51_AFD7_ED55_8CCD
    }
  }
}
