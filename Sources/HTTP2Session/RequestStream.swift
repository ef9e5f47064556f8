package import APNSMockHTTPMessage

/// One stream of a server session, from its HEADERS until it is closed.
///
/// The session owns the object and reuses it for a later stream, of any session with the same `RequestStreamPool`,
/// once the stream is answered and closed. A handler that receives it in an event must read it at once and keep
/// only the stream identifier; `HTTP2ServerSession.stream(withID:)` returns the object while the stream is open.
/// Not Sendable: it is confined to its session's event loop.
package final class RequestStream {
  /// The request as received so far.
  package internal(set) var request = HTTPRequest()
  /// What is known of the stream apart from its request. Other modules read it through the properties below.
  var state = State()

  /// What the server has submitted that ends its side of a stream.
  enum ServerEnd {
    case none
    /// RST_STREAM.
    case reset
    /// A response, perhaps with RST_STREAM after it.
    case response
  }

  /// The state of a stream apart from its request.
  struct State {
    var id: Int32 = 0
    /// The index in the session's `open`.
    var index = 0
    var isComplete = false
    var serverEnd = ServerEnd.none
    var isOverdue = false
    var isRefused = false
    var isReported = false
    /// Whether the header block is complete.
    var hasHeaders = false
    /// The number of `endOverdueStreams` calls at which the client had not completed its request or opened its window.
    var overdueChecks: UInt8 = 0
    var violation: MessageViolation?
    /// The name of the header field that violates the rules.
    var violationField: String?
    /// Whether END_STREAM of the response was appended to the output.
    var isResponseSent = false
    /// Whether the end of the response is reported as an event.
    var reportsEnd = false
    /// The error code of the RST_STREAM that was sent on this stream; nil without one, or if the code is unknown.
    var resetSent: HTTP2ErrorCode?
    /// The validation of the request.
    var validator = MessageValidator()
    /// The response's body, if it has one.
    var responseBody: ResponseBodyParts?
    /// Body bytes withheld from the stream's flow-control window.
    var withheldBytes = 0
  }

  /// The stream identifier.
  package var id: Int32 { state.id }
  /// Whether the client has ended its side of the stream.
  package var isComplete: Bool { state.isComplete }
  /// Whether a response or RST_STREAM was submitted.
  package var isEndedByServer: Bool { state.serverEnd != .none }
  /// Whether the stream was reset because its request was not completed, or its response not accepted, in time.
  package var isOverdue: Bool { state.isOverdue }
  /// Whether the server refused the stream because it reduced the stream limit.
  package var isRefused: Bool { state.isRefused }
  /// Whether the stream was reported as an event and must not be reported again.
  package var isReported: Bool { state.isReported }
  /// The violation of HTTP/2 for which the stream was reset.
  package var violation: MessageViolation? { state.violation }

  /// The violation in words, with the header field and what to change; nil without a violation.
  package var violationText: String? {
    state.violation.map { violation in
      let field = state.violationField.map { " (header field \($0))" } ?? ""
      return "\(violation.description)\(field). \(violation.remedy)"
    }
  }
  /// The error code of the RST_STREAM that was sent on this stream; nil without one, or if the code is unknown.
  package var resetSent: HTTP2ErrorCode? { state.resetSent }

  /// Whether a response was submitted of which not everything was appended to the output.
  var isResponseUnfinished: Bool { state.serverEnd == .response && !state.isResponseSent }

  /// Whether a part of the response waits for `HTTP2ServerSession.releasePart`.
  var isAwaitingRelease: Bool { state.responseBody?.isAwaitingRelease == true }

  /// Moves the request out for processing, which avoids retaining its buffers. Call `putBack` afterwards.
  package func takeRequest() -> HTTPRequest {
    var request = HTTPRequest()
    swap(&request, &self.request)
    return request
  }

  /// Returns a request that `takeRequest` moved out.
  package func putBack(_ request: consuming HTTPRequest) { self.request = request }

  /// Prepares the object for another stream.
  func reset(id: Int32, index: Int) {
    request.reset()
    request.stream = id
    state = State(id: id, index: index)
  }
}

/// Reusable stream objects with their buffers, and temporary memory for nghttp2.
///
/// The sessions of one event loop share a pool, so that an idle connection owns none of this memory. Not Sendable:
/// all sessions that share a pool are confined to one thread.
package final class RequestStreamPool {
  /// The maximum number of free objects, so that memory used by a burst is released. With requests of maximum size
  /// they take 4 MB.
  static let limit = 256

  /// The free objects, each retained once.
  private var free: [Unmanaged<RequestStream>] = []
  /// The allocator for nghttp2's small objects.
  let small = FreeListAllocator()
  /// The buffer in which a session assembles a frame (`SessionMemory`).
  let frameBlock = UnsafeMutableRawPointer.allocate(byteCount: SessionMemory.frameSize, alignment: 16)
  /// The stream table of an ended session, kept for the next one to avoid another `mmap`.
  var spareTable: UnsafeMutableRawPointer?
  /// The buffer for the fields of the header block being received.
  let fieldBlock = UnsafeMutableRawPointer.allocate(byteCount: FieldBuffer.capacity, alignment: 16)

  /// Rewrites HEADERS frames with Huffman-coded strings.
  let huffmanExpander = HuffmanExpander()

  /// Creates an empty pool.
  package init() {}

  deinit {
    for stream in free { stream.release() }
    spareTable.map(SessionMemory.unmapTable)
    frameBlock.deallocate()
    fieldBlock.deallocate()
  }

  /// The number of free objects.
  var count: Int { free.count }

  /// Returns an object in an arbitrary state, retained once on behalf of the caller.
  func makeStream() -> Unmanaged<RequestStream> { free.popLast() ?? .passRetained(RequestStream()) }

  /// Takes back an object that is no longer read, together with its retain.
  func recycle(_ stream: Unmanaged<RequestStream>) {
    if free.count < Self.limit { free.append(stream) } else { stream.release() }
  }
}

/// The body of a response, sent in one or more parts.
struct ResponseBodyParts {
  /// The next step for nghttp2's data provider.
  enum Step {
    /// The number of bytes to send; the last bytes carry END_STREAM.
    case bytes(Int, isLast: Bool)
    /// Wait for `release`.
    case waiting
  }

  /// The current part. Nearly all bodies have only one part, which needs no array.
  private var part: [UInt8]
  /// The parts after the current one.
  private var rest: ArraySlice<[UInt8]> = []
  private let count: Int
  /// The number of parts that may be sent.
  private var released: Int
  private var index = 0
  private var offset = 0

  /// Creates a body that is sent as a whole.
  init(_ body: [UInt8]) {
    part = body
    count = 1
    released = .max
  }

  /// Creates a body in parts.
  ///
  /// - Parameter waitsForRelease: Whether each part waits for `release`.
  init(parts: [[UInt8]], waitsForRelease: Bool) {
    part = parts.first ?? []
    rest = parts.dropFirst()
    count = parts.count
    released = waitsForRelease ? 0 : .max
  }

  /// Whether a part waits for `release`. Without parts, END_STREAM waits.
  var isAwaitingRelease: Bool { released < max(count, 1) }

  /// Allows one more part to be sent.
  mutating func release() {
    if isAwaitingRelease { released += 1 }
  }

  /// Copies as much of the current part as fits.
  mutating func copyNext(to buffer: UnsafeMutableBufferPointer<UInt8>) -> Step {
    guard index < count else {
      if isAwaitingRelease { return .waiting }
      return .bytes(0, isLast: true)
    }
    guard index < released else { return .waiting }
    let size = min(buffer.count, part.count - offset)
    part.withUnsafeBufferPointer { part in
      _ = buffer.update(fromContentsOf: UnsafeBufferPointer(rebasing: part[offset..<offset + size]))
    }
    offset += size
    if offset == part.count {
      index += 1
      offset = 0
      part = rest.popFirst() ?? []
    }
    return .bytes(size, isLast: index == count)
  }
}
