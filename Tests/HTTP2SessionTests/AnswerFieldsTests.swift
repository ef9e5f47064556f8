import APNSMockHTTPMessage
import Testing

@testable import APNSMockHTTP2Session

/// HPACK encoding of response header fields (RFC 7541).
@Suite struct AnswerFieldsTests {
  /// The HPACK static table entry `:status: 200`, as an indexed field.
  private static let status: UInt8 = 0x88

  /// Field names enter the client's dynamic table once. After the first responses, ids are sent as literals that are
  /// never indexed, so the table no longer changes.
  @Test func idsAreLiteralsWithIndexedNames() throws {
    let pair = try Pair()
    var expected: [Int32: HTTPResponse] = [:]
    for number in 0..<500 {
      let headers = HeaderList([
        (":status", "200"), ("apns-id", "ID-\(number)"), ("apns-unique-id", "unique-\(number)"),
      ])
      var response = HTTPResponse()
      response.headers = headers
      expected[try pair.push()] = response
      try pair.pump { event in
        guard case .request(let stream) = event else { return }
        pair.server.respond(to: stream, headers: headers)
      }
    }
    for case .response(let stream, let response) in pair.clientEvents {
      #expect(expected.removeValue(forKey: stream) == response)
    }
    #expect(expected.isEmpty)

    let answers = Frame.all(in: pair.fromServer).filter { $0.type == 1 }.map(\.payload)
    let first = try #require(answers.first)
    // Literal with incremental indexing and a new name (section 6.2.1).
    #expect(first.starts(with: [Self.status, 0x40]))
    let learnt = answers.dropFirst(HTTP2ServerSession.maxIndexedResponses)
    let fields = Set(learnt.map { Array($0.prefix(3)) })
    // Literal never indexed (section 6.2.3); the name is always the same table entry.
    #expect(fields.count == 1)
    #expect(fields.first?.starts(with: [Self.status, 0x1f]) == true)
  }

  /// Fields that are equal in every rejection take one byte each.
  @Test func constantFieldsAreIndexed() throws {
    let pair = try Pair()
    for number in 0..<20 {
      try pair.push()
      try pair.pump { event in
        guard case .request(let stream) = event else { return }
        pair.server.respond(
          to: stream,
          headers: HeaderList([(":status", "410"), ("apns-id", "\(number)"), ("content-type", "application/json")]),
          body: Array("{}".utf8))
      }
    }
    let last = try #require(Frame.all(in: pair.fromServer).last { $0.type == 1 })
    // The status (1 byte), the index of the id's name (2), the id's length (1), two digits in two bytes, the content
    // type (1).
    #expect(last.payload.count == 7)
    #expect(last.payload.first.map { $0 & 0x80 } == 0x80 && last.payload.last.map { $0 & 0x80 } == 0x80)
  }
}
