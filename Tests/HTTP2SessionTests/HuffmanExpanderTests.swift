import CAPNSMockNghttp2
import APNSMockHTTPMessage
import Testing

@testable import APNSMockHTTP2Session

/// HEADERS frames whose Huffman-coded strings are expanded before nghttp2 reads them.
@Suite struct HuffmanExpanderTests {
  private static let endHeaders: UInt8 = 4

  private func plain(
    _ block: [UInt8], flags: UInt8 = endHeaders, from headers: HuffmanExpander = HuffmanExpander()
  ) -> [UInt8]? {
    Frame.bytes(type: 1, flags: flags, stream: 1, payload: block).withUnsafeBytes { frame in
      headers.expand(frame).map { Array($0) }
    }
  }

  /// The same requests and responses, without Huffman coding and with it (RFC 7541 appendix C).
  @Test(arguments: [
    ("C.3.1", "828684410f7777772e6578616d706c652e636f6d", "C.4.1", "828684418cf1e3c2e5f23a6ba0ab90f4ff"),
    ("C.3.2", "828684be58086e6f2d6361636865", "C.4.2", "828684be5886a8eb10649cbf"),
    (
      "C.3.3", "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565", "C.4.3",
      "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf"
    ),
    (
      "C.5.1",
      """
      4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f
      7777772e6578616d706c652e636f6d
      """, "C.6.1",
      "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3"
    ),
  ])
  func examplesOfTheRFC(plainSection: String, plain: String, codedSection: String, coded: String) {
    let block = [UInt8](hexadecimal: plain)
    #expect(
      self.plain([UInt8](hexadecimal: coded)) == Frame.bytes(type: 1, flags: 4, stream: 1, payload: block),
      "\(codedSection) is not \(plainSection)")
  }

  @Test(arguments: unusual)
  func unusualBlocksStayUnchanged(what: String, flags: UInt8, block: [UInt8]) {
    #expect(plain(block, flags: flags) == nil, "\(what)")
  }

  private static let coded: [UInt8] = [0x04, 0x81, 0x1f]
  private static let unusual: [(String, UInt8, [UInt8])] = [
    ("no string is coded", 4, [0x82, 0x04, 0x01, 0x61]), ("no fields", 4, []),
    ("its end is in another frame", 0, coded), ("padded", 4 | 8, [1] + coded + [0]),
    ("a priority that is not whole", 4 | 0x20, [0, 0, 0]), ("a string that is not whole", 4, [0x04, 0x82, 0x1f]),
    ("no string", 4, [0x82, 0x04]), ("a length that is not whole", 4, [0x04, 0xff]),
    ("a length without end", 4, [0x04, 0xff, 0x80, 0x80, 0x80, 0x80, 0x00]),
    ("an index without end", 4, coded + [0xff, 0x80]), ("a value that is not valid", 4, [0x04, 0x81, 0xff]),
    ("a name that is not valid", 4, [0x00, 0x81, 0xff, 0x01, 0x61]),
    ("too large when it is written out", 4, [0x04, 0xff, 0x81, 0x7f] + [UInt8](repeating: 0, count: 16_380 - 4)),
    ("too large already", 4, coded + [UInt8](repeating: 0x82, count: 16_384)),
  ]

  @Test func priorityFieldsAreKept() {
    let priority: [UInt8] = [0x80, 0, 0, 0, 15]
    let block = priority + Self.coded
    #expect(
      plain(block, flags: 4 | 0x20)
        == Frame.bytes(type: 1, flags: 4 | 0x20, stream: 1, payload: priority + [0x04, 0x01, 0x61]))
  }

  /// String lengths around the limits at which the length takes one byte more.
  @Test(arguments: [79, 126, 127, 128, 254, 255, 256, 2000, 16_378])
  func lengthsOfStrings(length: Int) throws {
    // A zero code of five bits is "0".
    var block: [UInt8] = [0x04]
    let bits = 5 * length
    var bytes = [UInt8](repeating: 0, count: (bits + 7) / 8)
    if bits % 8 != 0 { bytes[bytes.count - 1] = UInt8(1 << (8 - bits % 8) - 1) }
    block += bytes.count < 127 ? [0x80 | UInt8(bytes.count)] : [0xff] + Self.number(bytes.count - 127)
    block += bytes
    let headers = HuffmanExpander()
    // In the second round, the length of the provider token is already known.
    for _ in 0..<2 {
      let written = try #require(plain(block, from: headers))
      let head = length < 127 ? [UInt8(length)] : [0x7f] + Self.number(length - 127)
      #expect(Array(written.dropFirst(9)) == [0x04] + head + [UInt8](repeating: 0x30, count: length))
      #expect(Frame.all(in: written).count == 1)
    }
  }

  /// Encodes the rest of an integer whose prefix is full (RFC 7541 section 5.1).
  static func number(_ value: Int) -> [UInt8] {
    value < 128 ? [UInt8(value)] : [UInt8(value & 127 | 128)] + number(value >> 7)
  }

  @Test func tokenWithAKnownSuffixIsNotReplaced() throws {
    let headers = HuffmanExpander()
    let ends: [UInt8] = [0x1c, 0x7f]
    for first in [UInt8(0), 0x08, 0x10] {
      let block = [0x1f, 0x08, 0xff, 0] + [first] + [UInt8](repeating: 0, count: 124) + ends
      #expect(plain(block, from: headers) == plain(block), "another string that was kept was taken for it")
    }
  }

  /// Random header blocks, valid and invalid, on one connection: nghttp2 reads the same fields from the expanded
  /// block, and rejects the same blocks.
  @Test(arguments: 0..<60)
  func nghttp2ReadsTheSame(seed: Int) throws {
    var chance = Chance(state: UInt64(seed))
    let (ordinary, spared) = (try Inflater(), try Inflater())
    let headers = HuffmanExpander()
    var changed = 0
    for _ in 0..<60 {
      let block = chance.block()
      let instead = plain(block, from: headers).map { Array($0.dropFirst(9)) }
      if instead != nil { changed += 1 }
      let fields = ordinary.fields(of: block)
      #expect(spared.fields(of: instead ?? block) == fields, "\(block)")
      // An invalid block ends the connection.
      if fields == nil { break }
    }
    if seed == 0 { #expect(changed > 5, "a seed that says little") }
  }

  /// The bytes are split at every position: when nghttp2 has the first part of a frame, it gets the rest unchanged.
  @Test func requestsInPieces() throws {
    func request(_ stream: Int32, _ field: [UInt8]) -> [UInt8] {
      let usual = Frame.request(stream).dropFirst(9)
      return Frame.bytes(type: 1, flags: 4, stream: stream, payload: usual + field)
        + Frame.data(stream, count: 3, endStream: true)
    }
    let coded = [UInt8](hexadecimal: "408825a849e95ba97d7f8925a849e95bb8e8b4bf")
    let bytes = request(1, coded) + request(3, [0xbe]) + request(5, coded)
    for cut in 0...bytes.count {
      let session = try HTTP2ServerSession.begun()
      let requests = try session.requests(Array(bytes[..<cut])) + session.requests(Array(bytes[cut...]))
      #expect(requests.map(\.id) == [1, 3, 5], "cut at \(cut)")
      #expect(requests.allSatisfy { $0.request.headers["custom-key"] == "custom-value" }, "cut at \(cut)")
      #expect(session.drained().allSatisfy { $0.type != 7 })
    }
    let session = try HTTP2ServerSession.begun()
    #expect(try session.requests(bytes, inPiecesOf: 1).map(\.id) == [1, 3, 5])
  }

  /// Bytes after an error that ends the connection are ignored, as when they arrive in one piece.
  @Test func bytesAfterAnErrorAreIgnored() throws {
    let session = try HTTP2ServerSession.begun()
    // An even stream id, which only the server may use, followed by a request with coded strings.
    let usual = Frame.request(3).dropFirst(9)
    let behind = Frame.bytes(type: 1, flags: 5, stream: 3, payload: usual + [0x00, 0x81, 0x1f, 0x81, 0x1f])
    #expect(try session.requests(Frame.request(2) + behind).isEmpty)
    #expect(session.drained().map(\.type) == [7])
  }
}

/// Pseudorandom header blocks of one connection.
private struct Chance {
  var state: UInt64
  private var said: [[UInt8]] = []

  init(state: UInt64) { self.state = state }

  private mutating func below(_ limit: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int(state >> 33) % limit
  }

  mutating func block() -> [UInt8] {
    var block: [UInt8] = []
    // RFC 7541 section 4.2: table size updates are allowed only at the beginning.
    if below(8) == 0 { block += [[0x20], [0x3e], [0x3f, 0x45], [0x3f, 0xe1, 0x1f]][below(4)] }
    for _ in 0..<below(7) { block += field() }
    switch below(60) {
    case 0: block.removeLast(min(block.count, 1 + below(4)))
    case 1 where !block.isEmpty: block[below(block.count)] ^= UInt8(1 << below(8))
    case 2: block += [0x3f, 0xff, 0xff]
    default: break
    }
    return block
  }

  private mutating func field() -> [UInt8] {
    // Rarely beyond the table; the last index takes two bytes.
    let index = below(30) == 0 ? 61 + below(10) : 1 + below(61)
    if below(3) == 0 { return [0x80 | UInt8(index)] }
    let (first, most) = [(UInt8(0x40), 0x3f), (0x00, 0x0f), (0x10, 0x0f)][below(3)]
    if below(3) == 0 { return [first] + string() + string() }
    return (index < most ? [first | UInt8(index)] : [first | UInt8(most), UInt8(index - most)]) + string()
  }

  private mutating func string() -> [UInt8] {
    if let known = said.last, below(4) == 0 { return known }
    let length = below(12) == 0 ? 120 + below(300) : below(40)
    let isAnyByte = below(10) == 0
    let text = (0..<length).map { _ in isAnyByte ? below(256) : 0x2d + below(0x4e) }
    let coded = below(4) != 0
    let bytes =
      switch below(150) {
      case 0: text.map(UInt8.init)
      case 1: HuffmanCodeTests.coded(text, filledWith: 0)
      default: coded ? HuffmanCodeTests.coded(text) : text.map(UInt8.init)
      }
    let mark: UInt8 = coded ? 0x80 : 0
    let rest = bytes.count - 127
    let head = rest < 0 ? [mark | UInt8(bytes.count)] : [mark | 0x7f] + HuffmanExpanderTests.number(rest)
    said.append(head + bytes)
    return head + bytes
  }
}

/// nghttp2's header block decoder.
private final class Inflater {
  private let inflater: OpaquePointer

  init() throws {
    var made: OpaquePointer?
    try #require(nghttp2_hd_inflate_new(&made) == 0)
    inflater = try #require(made)
  }

  deinit { nghttp2_hd_inflate_del(inflater) }

  /// Returns the names and values alternately; nil if the block is invalid.
  func fields(of block: [UInt8]) -> [[UInt8]]? {
    block.withUnsafeBufferPointer { block in
      var fields: [[UInt8]] = []
      var rest = block[...]
      while true {
        var field = nghttp2_nv()
        var flags: CInt = 0
        let input = UnsafeBufferPointer(rebasing: rest)
        let count = nghttp2_hd_inflate_hd2(inflater, &field, &flags, input.baseAddress, input.count, 1)
        guard count >= 0 else { return nil }
        rest = rest.dropFirst(count)
        if flags & CInt(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
          fields.append(Array(UnsafeBufferPointer(start: field.name, count: field.namelen)))
          fields.append(Array(UnsafeBufferPointer(start: field.value, count: field.valuelen)))
        }
        if flags & CInt(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
          nghttp2_hd_inflate_end_headers(inflater)
          return fields
        }
      }
    }
  }
}
