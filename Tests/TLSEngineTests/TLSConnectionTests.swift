internal import CAPNSMockOpenSSL
import Testing

@testable import APNSMockTLSEngine

/// KeyUpdate messages of TLS 1.3 (RFC 8446 section 4.6.3) are counted, so that a flood of them can be stopped.
@Suite struct KeyUpdateTests {
  @Test(arguments: [SSL_KEY_UPDATE_NOT_REQUESTED, SSL_KEY_UPDATE_REQUESTED])
  func clientKeyUpdatesAreCounted(kind: Int32) throws {
    try TLSPair.withOpenOne { pair in
      #expect(pair.server.keyUpdates == 0, "the handshake itself does not count")
      for count in 1...40 {
        let isSent = SSL_key_update(pair.client.ssl, kind) == 1 && SSL_do_handshake(pair.client.ssl) == 1
        #expect(isSent)
        pair.carryUp()
        var heard = [UInt8](repeating: 0, count: 100)
        let result = try heard.withUnsafeMutableBytes { try pair.server.read(into: $0) }
        #expect(result == .waiting)
        #expect(pair.server.keyUpdates == count)
      }
      let answer = try pair.say("still")
      #expect(answer == "still")
      #expect(pair.server.keyUpdates == 40, "data and our own answers do not count")
    }
  }
}

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
