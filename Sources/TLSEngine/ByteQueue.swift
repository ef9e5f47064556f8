/// Bytes that are appended at one end and moved out at the other, in memory that is kept for the next ones.
///
/// An array that is emptied and filled again for each record takes several times as long.
struct ByteQueue: ~Copyable {
  // Owned: freed in deinit, or when it is replaced by a larger one.
  private(set) var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private var start = 0
  private var end = 0

  deinit { memory.deallocate() }

  var isEmpty: Bool { start == end }

  /// What is in it. Valid until it is changed.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[start..<end]) }

  mutating func append(_ new: UnsafeRawBufferPointer) {
    guard let source = new.baseAddress, new.count > 0 else { return }
    if memory.count - end < new.count { makeRoom(for: new.count) }
    memory.baseAddress?.advanced(by: end).copyMemory(from: source, byteCount: new.count)
    end += new.count
  }

  /// Moves out as much as there is room for.
  ///
  /// - Returns: how many bytes.
  mutating func move(to room: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(room.count, end - start)
    guard count > 0, let source = memory.baseAddress else { return 0 }
    room.baseAddress?.copyMemory(from: source.advanced(by: start), byteCount: count)
    start += count
    if isEmpty { removeAll() }
    return count
  }

  /// Forgets what is in it and keeps the memory.
  mutating func removeAll() {
    start = 0
    end = 0
  }

  private mutating func makeRoom(for count: Int) {
    let held = bytes
    if held.count + count <= memory.count / 2 {
      // What was moved out has left enough room at the front; the two may overlap.
      memory.copyMemory(from: held)
    } else {
      // Half as much again, so that what grows byte by byte is not moved each time.
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
