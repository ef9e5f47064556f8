/// Tracks closed streams and decides whether HEADERS and DATA on them are errors.
///
/// nghttp2 ignores both on any closed stream. That is right for a stream that the server reset, because the client
/// may not know it yet (RFC 9113 section 5.1), and wrong for the others: a skipped identifier must not be used any
/// more (section 5.1.1), and a client sends nothing more on a stream that it has ended or reset.
///
/// Only exceptions are stored, the latest 64 of each kind. Frames on streams up to the last discarded reset are
/// ignored.
struct ClosedStreamTracker {
  private static let remembered = 64

  /// The highest stream the client has opened.
  private(set) var highest: Int32 = 0
  private var passedOver: [ClosedRange<Int32>] = []
  private var resetByServer: [Int32] = []
  /// Streams refused because of a reduced stream limit before the client ended them, and on which it has sent
  /// nothing since. At most 1024; frames on discarded ones are ignored.
  private var refused: Set<Int32> = []
  /// The highest stream that was removed from `resetByServer`.
  private var forgotten: Int32 = 0

  /// Records that the client opened a stream above `highest`.
  mutating func opened(_ id: Int32) {
    if id - highest > 2 { Self.remember(highest + 1...id - 1, in: &passedOver) }
    highest = id
  }

  /// Records that the server sent RST_STREAM.
  mutating func reset(_ id: Int32) {
    if let one = Self.remember(id, in: &resetByServer) { forgotten = max(forgotten, one) }
  }

  /// Records that the server refused a stream that the client has not ended, because it reduced the stream limit.
  mutating func refuse(_ id: Int32) {
    if refused.count >= 1024 { refused.removeAll() }
    refused.insert(id)
  }

  /// Returns whether this is the client's first frame on a refused stream, which is answered with RST_STREAM
  /// STREAM_CLOSED.
  mutating func takeLateFrame(on id: Int32) -> Bool { !refused.isEmpty && refused.remove(id) != nil }

  /// Returns the connection error that HEADERS or DATA on a closed stream up to `highest` cause; nil if they are
  /// ignored.
  func error(of id: Int32) -> HTTP2ErrorCode? {
    if passedOver.contains(where: { $0.contains(id) }) { return .protocolError }
    return id <= forgotten || resetByServer.contains(id) ? nil : .streamClosed
  }

  /// - Returns: The element that was discarded, if any.
  @discardableResult
  private static func remember<Element>(_ element: Element, in list: inout [Element]) -> Element? {
    list.append(element)
    return list.count > remembered ? list.removeFirst() : nil
  }
}
