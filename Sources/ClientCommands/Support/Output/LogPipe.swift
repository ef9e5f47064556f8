import Dispatch
import NIOConcurrencyHelpers

/// A bounded queue of log lines and the thread that writes them.
///
/// Event loops write logs, so adding a line never blocks, even if the stream is not read. Lines are dropped and counted
/// while the queue is full.
package final class LogPipe: Sendable {
  /// The queue of this process's standard error.
  package static let standardError = LogPipe { StandardStream.error.writeDirectly($0) }

  /// The most bytes that are queued.
  static let capacity = 1 << 20
  /// The most bytes per write: a pipe writes this many atomically (PIPE_BUF).
  private static let batchSize = 4096

  private struct State {
    var lines: [[UInt8]] = []
    /// Bytes of `lines` and of the lines being written.
    var size = 0
    var dropped = 0
    /// The text that replaces dropped lines; set while `dropped` is above 0.
    var gap: (@Sendable (Int) -> [UInt8])?
    /// Whether the writer has been started and has not found the queue empty since.
    var isWriting = false

    mutating func add(_ line: [UInt8]) {
      lines.append(line)
      size += line.count
    }

    /// Adds the text that replaces the lines dropped so far.
    mutating func addGap() {
      if let gap { add(gap(dropped)) }
      dropped = 0
      gap = nil
    }
  }

  private let capacity: Int
  private let flushTimeout: DispatchTimeInterval
  private let output: @Sendable ([UInt8]) -> Void
  private let state = NIOLockedValueBox(State())
  private let writer = DispatchQueue(label: "apns-mock.log")

  /// Creates a queue whose lines go to `output`, in order and from one thread at a time. It may block.
  ///
  /// - Parameters:
  ///   - capacity: The most bytes that are queued.
  ///   - flushTimeout: The longest time a flush waits for a stream that is not read.
  init(
    capacity: Int = LogPipe.capacity, flushTimeout: DispatchTimeInterval = .seconds(1),
    output: @escaping @Sendable ([UInt8]) -> Void
  ) {
    self.capacity = capacity
    self.flushTimeout = flushTimeout
    self.output = output
  }

  /// Adds a line, which includes its line break, or drops it if the queue is full.
  ///
  /// - Parameter gap: Returns the line that replaces a number of dropped lines.
  package func write(_ line: [UInt8], gap: @escaping @Sendable (Int) -> [UInt8]) {
    state.withLockedValue { state in
      guard state.size + line.count <= capacity else {
        state.dropped += 1
        state.gap = gap
        return
      }
      state.addGap()
      state.add(line)
      guard !state.isWriting else { return }
      state.isWriting = true
      // Under the lock, so that a flush is queued behind it.
      writer.async { self.drain() }
    }
  }

  /// Waits until all earlier lines are written, at most as long as the flush timeout.
  package func flush() {
    guard state.withLockedValue({ $0.isWriting }) else { return }
    // The writer is a serial queue: this runs once the lines are written.
    let end = DispatchWorkItem {}
    writer.async(execute: end)
    _ = end.wait(timeout: .now() + flushTimeout)
  }

  /// Writes lines until none are left.
  private func drain() {
    while let lines = takeLines() {
      var batch: [UInt8] = []
      for line in lines {
        if !batch.isEmpty, batch.count + line.count > Self.batchSize {
          put(batch)
          batch.removeAll(keepingCapacity: true)
        }
        batch += line
      }
      put(batch)
    }
  }

  private func put(_ batch: [UInt8]) {
    output(batch)
    state.withLockedValue { $0.size -= batch.count }
  }

  /// Removes the queued lines; returns nil if there are none, which ends the writer.
  private func takeLines() -> [[UInt8]]? {
    state.withLockedValue { state in
      if state.lines.isEmpty { state.addGap() }
      guard !state.lines.isEmpty else {
        state.isWriting = false
        return nil
      }
      defer { state.lines = [] }
      return state.lines
    }
  }
}
