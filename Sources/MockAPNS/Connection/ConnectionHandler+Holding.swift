import HTTP2Session
import Inbox
import NIOCore

/// Frames that wait until the store has the records of the pushes that they answer.
struct HeldOutput {
  /// The number of bytes from which the connection is not read.
  static let limit = 256 << 10

  /// The batch with the newest records of the connection; nil if no answer has to wait.
  var batch: Int?
  /// The bytes that wait, with the batch that each part waits for.
  private(set) var parts = CircularBuffer<(batch: Int, bytes: ByteBuffer)>(initialCapacity: 1)
  /// The number of bytes that wait.
  private(set) var byteCount = 0
  /// Whether the handler is called when the first part need not wait any more.
  var isAwaiting = false
  /// Whether the connection ends when nothing waits any more.
  var closesTransport = false
  /// Whether what waits has all frames of all responses to recorded pushes, so that later frames may leave before it.
  var isSelfContained = false

  mutating func append(_ bytes: ByteBuffer, until batch: Int) {
    byteCount += bytes.readableBytes
    parts.append((batch, bytes))
  }

  mutating func removeAll() {
    parts.removeAll()
    byteCount = 0
  }

  mutating func removeFirst() {
    guard let first = parts.popFirst() else { return }
    byteCount -= first.bytes.readableBytes
  }
}

/// Holding of answers, for an inbox with a store: `--durable answer`, or a store that is slower than the pushes.
extension ConnectionHandler {
  /// Keeps the new frames back if they have to wait for the store. All frames behind them wait too, with one exception:
  /// while the store fails, responses to pushes that are refused leave before answers that wait.
  ///
  /// - Parameter isComplete: Whether the session has no more frames.
  /// - Returns: Whether they are kept.
  func holdFrames(
    of session: HTTP2ServerSession, _ isComplete: Bool, for writer: RecordWriter, _ context: ChannelHandlerContext
  ) -> Bool {
    guard let batch = output.held.batch, !output.held.parts.isEmpty || !writer.isWritten(batch) else { return false }
    if resources.frames.isEmpty || output.held.isSelfContained && writer.refusesPushes { return false }
    output.held.isSelfContained =
      isComplete && writer.options.durability == .answer && !session.hasPendingResponses
    output.held.append(context.channel.allocator.buffer(bytes: resources.frames), until: batch)
    if output.held.byteCount > HeldOutput.limit { _ = context.channel.setOption(ChannelOptions.autoRead, value: false) }
    awaitStore(writer, context)
    return true
  }

  private func awaitStore(_ writer: RecordWriter, _ context: ChannelHandlerContext) {
    guard !output.held.isAwaiting, let first = output.held.parts.first else { return }
    output.held.isAwaiting = true
    // Handler and context belong to this event loop and the task runs on it; `NIOLoopBound` checks this.
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let eventLoop = context.eventLoop
    writer.whenWritten(first.batch) {
      eventLoop.execute { bound.value.0.release(writer, bound.value.1) }
    }
  }

  private func release(_ writer: RecordWriter, _ context: ChannelHandlerContext) {
    output.held.isAwaiting = false
    let wasFull = output.held.byteCount > HeldOutput.limit
    // Writing may call this handler, which then appends further parts.
    while let part = output.held.parts.first, writer.isWritten(part.batch) {
      output.held.removeFirst()
      guard part.bytes.withUnsafeReadableBytes({ encrypt($0, context) }) else {
        output.held.removeAll()
        break
      }
      writeCipherText(context)
    }
    awaitStore(writer, context)
    guard output.held.parts.isEmpty else { return }
    if output.held.closesTransport { return closeTransport(context) }
    if wasFull, !stateMachine.isReadingSuspended, isWritable(context) {
      _ = context.channel.setOption(ChannelOptions.autoRead, value: true)
      flush(context)
    }
  }
}
