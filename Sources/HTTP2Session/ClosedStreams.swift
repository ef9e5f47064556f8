/// Which numbers of streams stand for closed ones, and whether a client may still send HEADERS on them.
///
/// nghttp2 ignores HEADERS on any stream that is closed. That is right for one that the server itself reset, whose client
/// may not know it yet (RFC 9113 section 5.1), and wrong for the others: a number that was passed over must not be used any
/// more (section 5.1.1), and a stream that was served must not begin again.
///
/// Only what is unusual is remembered, and of that the latest 64.
struct ClosedStreams {
  private static let remembered = 64

  /// The highest stream that the client has opened.
  private(set) var highest: Int32 = 0
  private var passedOver: [ClosedRange<Int32>] = []
  private var resetByServer: [Int32] = []

  /// The client opens a stream above `highest`.
  mutating func opened(_ id: Int32) {
    if id - highest > 2 { Self.remember(highest + 1...id - 1, in: &passedOver) }
    highest = id
  }

  /// The server has sent RST_STREAM.
  mutating func reset(_ id: Int32) {
    Self.remember(id, in: &resetByServer)
  }

  /// What the connection ends with if HEADERS come on a stream up to `highest` that is closed; nil if they are ignored.
  func error(of id: Int32) -> HTTP2ErrorCode? {
    if resetByServer.contains(id) { return nil }
    return passedOver.contains { $0.contains(id) } ? .protocolError : .streamClosed
  }

  private static func remember<Element>(_ element: Element, in list: inout [Element]) {
    if list.count == remembered { list.removeFirst() }
    list.append(element)
  }
}
