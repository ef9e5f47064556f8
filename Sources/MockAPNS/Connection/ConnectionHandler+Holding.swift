import Inbox
import NIOCore

/// Output that waits until the store has the records of the pushes that it answers.
struct HeldOutput {
  /// The batch with the newest records of the connection; nil if no answer has to wait.
  var batch: Int?
  /// The bytes that wait, with the batch that each part waits for. All bytes behind the first wait too: they are in
  /// order.
  var parts: [(batch: Int, bytes: ByteBuffer)] = []
  /// Whether the connection ends when nothing waits any more.
  var endsOutput = false
}

/// Holding of answers, for an inbox with a store: `--durable answer`, or a store that is slower than the pushes.
extension ConnectionHandler {
  /// Keeps bytes back if they have to wait for the store.
  ///
  /// - Returns: Whether they are kept.
  func hold(_ bytes: UnsafeRawBufferPointer, for writer: RecordWriter, _ context: ChannelHandlerContext) -> Bool {
    guard let batch = output.held.batch, !writer.isWritten(batch) || !output.held.parts.isEmpty else { return false }
    output.held.parts.append((batch, context.channel.allocator.buffer(bytes: bytes)))
    if output.held.parts.count == 1 { awaitStore(batch, writer, context) }
    return true
  }

  private func awaitStore(_ batch: Int, _ writer: RecordWriter, _ context: ChannelHandlerContext) {
    // Handler and context belong to this event loop and the task runs on it; `NIOLoopBound` checks this.
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let eventLoop = context.eventLoop
    writer.whenWritten(batch) {
      eventLoop.execute { bound.value.0.release(writer, bound.value.1) }
    }
  }

  private func release(_ writer: RecordWriter, _ context: ChannelHandlerContext) {
    let parts = output.held.parts
    let count = parts.firstIndex { !writer.isWritten($0.batch) } ?? parts.count
    output.held.parts = []
    for part in parts[..<count] { part.bytes.withUnsafeReadableBytes { putNow($0, context) } }
    output.held.parts = Array(parts[count...])
    if let next = output.held.parts.first { return awaitStore(next.batch, writer, context) }
    if output.held.endsOutput { endOutput(context) }
  }
}
