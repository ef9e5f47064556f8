import Testing

@testable import APNSMockClientCommands

/// Events parsed from pieces of an event stream.
@Suite struct EventStreamParserTests {
  private static let stream =
    ": hello\nid: 7\n\nevent: push\nid: 8\ndata: {\"a\":1}\n\nid: 9\r\ndata: x\r\ndata: y\r\n\r\n"

  @Test(arguments: 1...40)
  func eventsAreParsedFromAnyPieces(size: Int) {
    var parser = EventStreamParser()
    var events: [EventStreamParser.Event] = []
    let bytes = Array(Self.stream.utf8)
    for start in stride(from: 0, to: bytes.count, by: size) {
      events += parser.parse(Array(bytes[start..<min(start + size, bytes.count)]))
    }
    #expect(
      events == [.init(name: "push", data: Array("{\"a\":1}".utf8)), .init(name: "message", data: Array("x\ny".utf8))])
    #expect(parser.lastID == "9")
  }

  @Test func resumesAfterTheLastCompleteEvent() {
    var parser = EventStreamParser()
    #expect(parser.parse(Array("id: 3\ndata: a\n\nid: 4\ndata: ha".utf8)).count == 1)
    parser.restart()
    // The fourth event was not received completely, so it must be sent again.
    #expect(parser.lastID == "3")
    #expect(parser.parse(Array("id: 4\ndata: half\n\n".utf8)) == [.init(data: Array("half".utf8))])
    #expect(parser.lastID == "4")
  }
}
