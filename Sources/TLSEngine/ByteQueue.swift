/// A queue of bytes that reuses its memory.
///
/// An array that is emptied and filled again for each record takes several times as long.
struct ByteQueue: ~Copyable {
  // Owned: freed in deinit, or when it is replaced by a larger one.
  private(set) var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private var start = 0
  private var end = 0

  deinit { memory.deallocate() }

  var isEmpty: Bool { start == end }

  /// The queued bytes, valid until the queue is changed.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[start..<end]) }

  mutating func append(_ new: UnsafeRawBufferPointer) {
    guard let source = new.baseAddress, new.count > 0 else { return }
    if memory.count - end < new.count { makeRoom(for: new.count) }
    memory.baseAddress?.advanced(by: end).copyMemory(from: source, byteCount: new.count)
    end += new.count
  }

  /// Moves as many bytes as fit to `room`.
  ///
  /// - Returns: the number of bytes moved.
  mutating func move(to room: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(room.count, end - start)
    guard count > 0, let source = memory.baseAddress else { return 0 }
    room.baseAddress?.copyMemory(from: source.advanced(by: start), byteCount: count)
    start += count
    if isEmpty { removeAll() }
    return count
  }

  /// Discards all bytes but keeps the memory.
  mutating func removeAll() {
    start = 0
    end = 0
  }

  private mutating func makeRoom(for count: Int) {
    let held = bytes
    if held.count + count <= memory.count / 2 {
      // The bytes moved out have left enough space at the front; source and target may overlap.
      memory.copyMemory(from: held)
    } else {
      // Grows by half, so that small appends do not reallocate each time.
      let larger = UnsafeMutableRawBufferPointer.allocate(
        byteCount: max(held.count + count, memory.count + memory.count / 2), alignment: 1)
      larger.copyMemory(from: held)
      memory.deallocate()
      memory = larger
    }
    start = 0
    end = held.count
  }
}
