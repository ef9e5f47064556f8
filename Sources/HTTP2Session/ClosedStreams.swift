/// Which numbers of streams stand for closed ones, and whether a client may still send HEADERS and DATA on them.
///
/// nghttp2 ignores both on any stream that is closed. That is right for one that the server itself reset, whose client
/// may not know it yet (RFC 9113 section 5.1), and wrong for the others: a number that was passed over must not be used any
/// more (section 5.1.1), and whoever has ended a stream, or has taken it back, says nothing more on it.
///
/// Only what is unusual is remembered, and of that the latest 64. Streams before the last reset that was forgotten get the
/// benefit of the doubt.
struct ClosedStreams {
  private static let remembered = 64

  /// The highest stream that the client has opened.
  private(set) var highest: Int32 = 0
  private var passedOver: [ClosedRange<Int32>] = []
  private var resetByServer: [Int32] = []
  /// Streams refused because the stream limit was cut, before the client had ended them, and on which it has sent nothing
  /// since. At most 1024; frames on forgotten ones are ignored.
  private var refused: Set<Int32> = []
  /// The highest of those that the server has reset and that are not in the list any more.
  private var forgotten: Int32 = 0

  /// The client opens a stream above `highest`.
  mutating func opened(_ id: Int32) {
    if id - highest > 2 { Self.remember(highest + 1...id - 1, in: &passedOver) }
    highest = id
  }

  /// The server has sent RST_STREAM.
  mutating func reset(_ id: Int32) {
    if let one = Self.remember(id, in: &resetByServer) { forgotten = max(forgotten, one) }
  }

  /// The server refuses a stream that the client has not ended, because it cut the stream limit.
  mutating func refuse(_ id: Int32) {
    if refused.count >= 1024 { refused.removeAll() }
    refused.insert(id)
  }

  /// Whether the client sends its first frame on a refused stream, which is answered with RST_STREAM STREAM_CLOSED.
  mutating func takeLateFrame(on id: Int32) -> Bool { !refused.isEmpty && refused.remove(id) != nil }

  /// What the connection ends with if HEADERS or DATA come on a stream up to `highest` that is closed; nil if they are
  /// ignored.
  func error(of id: Int32) -> HTTP2ErrorCode? {
    if passedOver.contains(where: { $0.contains(id) }) { return .protocolError }
    return id <= forgotten || resetByServer.contains(id) ? nil : .streamClosed
  }

  /// - Returns: what was forgotten for it.
  @discardableResult
  private static func remember<Element>(_ element: Element, in list: inout [Element]) -> Element? {
    list.append(element)
    return list.count > remembered ? list.removeFirst() : nil
  }
}
