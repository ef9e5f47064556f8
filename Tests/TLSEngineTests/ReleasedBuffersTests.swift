import Testing

@testable import TLSEngine

/// Releasing the buffers of an idle connection.
@Suite struct ReleasedBuffersTests {
  @Test func connectionContinuesWithoutBuffers() throws {
    try TLSPair.withOpenOne { pair throws in
      for text in ["first", "second"] {
        pair.server.releaseBuffers()
        pair.client.releaseBuffers()
        #expect(try pair.say(text) == text)
      }
    }
  }

  @Test func pendingBytesAreKept() throws {
    try TLSPair.withOpenOne { pair in
      try Array("not lost".utf8).withUnsafeBytes { try pair.client.write($0) }
      pair.client.releaseBuffers()
      var record: [UInt8] = []
      pair.client.takeOutput { record += Array($0) }
      var heard = [UInt8](repeating: 0, count: 100)
      for part in [record.prefix(7), record.dropFirst(7)] {
        part.withUnsafeBytes { pair.server.receive($0) }
        pair.server.releaseBuffers()
      }
      let result = try heard.withUnsafeMutableBytes { try pair.server.read(into: $0) }
      #expect(result == .bytes(8))
      #expect(heard.prefix(8).elementsEqual("not lost".utf8))
    }
  }
}
