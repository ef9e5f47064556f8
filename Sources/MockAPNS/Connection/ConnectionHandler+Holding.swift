import APNSMockHTTP2Session
import APNSMockInbox
import NIOCore

/// Frames that wait until the store has the records of the requests that they answer.
struct HeldOutput {
  /// The number of bytes from which the connection is not read.
  static let limit = 256 << 10

  /// What answers to the newest requests of the connection wait for.
  var prerequisite = AnswerGate.Prerequisite()
  /// The bytes that wait, with what each part waits for.
  private(set) var parts = CircularBuffer<(prerequisite: AnswerGate.Prerequisite, bytes: ByteBuffer)>(
    initialCapacity: 1)
  /// The number of bytes that wait.
  private(set) var byteCount = 0
  /// Whether the handler is called when the first part need not wait any more.
  var isWaitingForStore = false
  /// Whether the connection ends when nothing waits any more.
  var closesTransport = false
  /// Whether a response that is ready may be sent before the held bytes. It may if the held bytes end complete responses
  /// and contain no SETTINGS, no GOAWAY, no status 100 and not the first header fields of the connection.
  var mayBeOvertaken = false
  /// Whether the first header fields of the connection were sent. They may have to announce the size of HPACK's table
  /// (RFC 7541, section 4.2), so they are not overtaken.
  var hasSentFirstFields = false
  /// Whether the connection is not read because too much waits.
  var stopsReading = false

  /// Whether what waits has a SETTINGS or GOAWAY frame.
  private(set) var hasOrderedFrames = false

  mutating func append(_ frames: borrowing [UInt8], _ allocator: ByteBufferAllocator) {
    byteCount += frames.count
    parts.append((prerequisite, allocator.buffer(bytes: copy frames)))
    hasOrderedFrames = hasOrderedFrames || Self.areOrdered(frames)
  }

  /// Whether some of the frames are SETTINGS or GOAWAY (RFC 9113, sections 6.5 and 6.8).
  static func areOrdered(_ frames: borrowing [UInt8]) -> Bool {
    var offset = 0
    while offset + 9 <= frames.count {
      if frames[offset + 3] == 4 || frames[offset + 3] == 7 { return true }
      offset += 9 + (Int(frames[offset]) << 16 | Int(frames[offset + 1]) << 8 | Int(frames[offset + 2]))
    }
    return false
  }

  mutating func removeAll() {
    parts.removeAll()
    byteCount = 0
    hasOrderedFrames = false
  }

  mutating func removeFirst() {
    guard let first = parts.popFirst() else { return }
    byteCount -= first.bytes.readableBytes
    if parts.isEmpty { hasOrderedFrames = false }
  }
}

/// Holding of answers, for an inbox with a store: `--durable answer`, a store that is slower than the pushes, or a server that
/// was stopped or cut off and may not be the active one any more.
extension ConnectionHandler {
  /// Keeps the new frames back if they have to wait for the store. All frames behind them wait too, with one exception:
  /// while the store fails, responses to pushes that are refused leave before answers that wait, and so do frames such as
  /// acknowledgements of PING.
  ///
  /// - Parameter isComplete: Whether the session has no more frames.
  /// - Returns: Whether they are kept.
  func holdFrames(
    of session: HTTP2ServerSession, _ isComplete: Bool, for writer: RecordWriter, _ context: ChannelHandlerContext
  ) -> Bool {
    guard !output.held.parts.isEmpty || !writer.answers.isMet(output.held.prerequisite) else {
      output.held.hasSentFirstFields = session.hasSentFields
      return false
    }
    if output.held.mayBeOvertaken, writer.answers.refusesPushes, !HeldOutput.areOrdered(resources.frames) {
      output.held.hasSentFirstFields = session.hasSentFields
      return false
    }
    if !resources.frames.isEmpty { output.held.append(resources.frames, context.channel.allocator) }
    output.held.mayBeOvertaken =
      isComplete && writer.options.durability == .answer && !output.held.hasOrderedFrames
      && (output.held.hasSentFirstFields || !session.hasSentFields)
      && !session.hasPendingResponses && !session.hasSentContinue
    guard !resources.frames.isEmpty else { return false }
    if output.held.byteCount > HeldOutput.limit {
      output.held.stopsReading = true
      _ = context.channel.setOption(ChannelOptions.autoRead, value: false)
    }
    awaitStore(writer, context)
    return true
  }

  private func awaitStore(_ writer: RecordWriter, _ context: ChannelHandlerContext) {
    guard !output.held.isWaitingForStore, let first = output.held.parts.first else { return }
    output.held.isWaitingForStore = true
    // Handler and context belong to this event loop and the task runs on it; `NIOLoopBound` checks this.
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let eventLoop = context.eventLoop
    writer.answers.whenMet(first.prerequisite) {
      eventLoop.execute { bound.value.0.release(writer, bound.value.1) }
    }
  }

  private func release(_ writer: RecordWriter, _ context: ChannelHandlerContext) {
    output.held.isWaitingForStore = false
    // Writing may call this handler, which then appends further parts.
    while let part = output.held.parts.first, writer.answers.isMet(part.prerequisite) {
      output.held.removeFirst()
      guard part.bytes.withUnsafeReadableBytes({ encrypt($0) }) else {
        output.held.removeAll()
        close(context)
        break
      }
      writeCipherText(context)
    }
    awaitStore(writer, context)
    if output.held.parts.isEmpty { output.held.hasSentFirstFields = session?.hasSentFields ?? true }
    // The client could not open its flow-control window for what it had not received.
    input.lastActivity = .now()
    if output.held.parts.isEmpty, output.held.closesTransport { return closeTransport(context) }
    guard output.held.stopsReading, output.held.byteCount <= HeldOutput.limit else { return }
    output.held.stopsReading = false
    if !stateMachine.isReadingSuspended, isWritable(context) {
      _ = context.channel.setOption(ChannelOptions.autoRead, value: true)
      flush(context)
    }
  }
}
