import CAPNSMockOpenSSL
import Testing

@testable import APNSMockTLSEngine

/// Cipher text that arrives and leaves in pieces that are not records.
@Suite struct CipherTextTests {
  /// A text of several records: byte by byte, in odd pieces, and at once.
  @Test(arguments: [1, 7, 1000, 16_401, 100_000])
  func inputInPiecesOfAnySize(size: Int) throws {
    try TLSPair.withOpenOne { pair in
      let text = (0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
      let record = try Self.said(text, by: pair.client)
      var heard: [UInt8] = []
      for start in stride(from: 0, to: record.count, by: size) {
        record[start..<min(start + size, record.count)].withUnsafeBytes { pair.server.receive($0) }
        heard += try Self.heard(by: pair.server, room: 64 << 10)
      }
      #expect(heard == text)
    }
  }

  /// The part of a record that exceeds the buffer is returned by the next read, without further input.
  @Test(arguments: [1, 100, 16_384, 16_385])
  func outputBuffersOfAnySize(room: Int) throws {
    try TLSPair.withOpenOne { pair in
      let text = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 17) }
      let records = try Self.said(text, by: pair.client)
      records.withUnsafeBytes { pair.server.receive($0) }
      #expect(try Self.heard(by: pair.server, room: room) == text)
    }
  }

  /// Borrowed bytes are read in place, and those that are not read while they are borrowed are kept in order.
  @Test(arguments: [0, 1, 5000, 16_384, 19_999])
  func unreadBorrowedInputIsKept(count: Int) throws {
    try TLSPair.withOpenOne { pair in
      let text = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 13) }
      var records = try Self.said(text, by: pair.client)
      var heard = try records.withUnsafeMutableBytes { lent in
        let heard = try pair.server.receive(UnsafeRawBufferPointer(lent)) {
          var room = [UInt8](repeating: 0, count: count)
          let result = try room.withUnsafeMutableBytes { try pair.server.read(into: $0) }
          #expect(result == .bytes(count))
          return room
        }
        // The owner reuses the memory.
        lent.initializeMemory(as: UInt8.self, repeating: 0)
        return heard
      }
      let last = try Self.said(Array("the end".utf8), by: pair.client)
      try last.withUnsafeBytes { lent in
        try pair.server.receive(lent) { heard += try Self.heard(by: pair.server, room: 1000) }
      }
      #expect(heard == text + Array("the end".utf8))
    }
  }

  @Test func nestedBorrowedInputIsAppended() throws {
    try TLSPair.withOpenOne { pair in
      let first = try Self.said(Array("first ".utf8), by: pair.client)
      let second = try Self.said(Array("second".utf8), by: pair.client)
      let heard = try first.withUnsafeBytes { first in
        try pair.server.receive(first) {
          second.withUnsafeBytes { second in pair.server.receive(second) }
          return try Self.heard(by: pair.server, room: 100)
        }
      }
      #expect(heard == Array("first second".utf8))
    }
  }

  @Test func endFollowsTheLastByte() throws {
    try TLSPair.withOpenOne { pair in
      var records = try Self.said(Array("last words".utf8), by: pair.client)
      pair.client.close()
      pair.client.takeOutput { records += Array($0) }
      records.withUnsafeBytes { pair.server.receive($0) }
      var room = [UInt8](repeating: 0, count: 100)
      #expect(try room.withUnsafeMutableBytes { try pair.server.read(into: $0) } == .bytes(10))
      #expect(try room.withUnsafeMutableBytes { try pair.server.read(into: $0) } == .closed)
    }
  }

  /// Output that is written while earlier output is being sent is sent by the next call.
  @Test func writesDuringOutputAreKept() throws {
    try TLSPair.withOpenOne { pair in
      var sent: [UInt8] = []
      try Array("one ".utf8).withUnsafeBytes { try pair.server.write($0) }
      pair.server.takeOutput { first in
        #expect(throws: Never.self) { try Array("two".utf8).withUnsafeBytes { try pair.server.write($0) } }
        sent += Array(first)
      }
      pair.server.takeOutput { sent += Array($0) }
      pair.server.takeOutput { _ in Issue.record("something was handed out twice") }
      sent.withUnsafeBytes { pair.client.receive($0) }
      #expect(try Self.heard(by: pair.client, room: 100) == Array("one two".utf8))
    }
  }

  /// Errors that other uses of OpenSSL left on the thread are not attributed to the connection.
  @Test func errorsOfOtherConnectionsAreIgnored() throws {
    try TLSPair.withOpenOne { pair in
      // After the first half of a record, the connection asks OpenSSL why it returned no bytes.
      let record = try Self.said(Array("still here".utf8), by: pair.client)
      for half in [record.prefix(7), record.dropFirst(7)] {
        #expect(BIO_new_file("no such file", "r") == nil && ERR_peek_error() != 0)
        half.withUnsafeBytes { pair.server.receive($0) }
        #expect(try Self.heard(by: pair.server, room: 100) == (half.startIndex == 0 ? [] : Array("still here".utf8)))
      }
      #expect(BIO_new_file("no such file", "r") == nil)
      #expect(throws: Never.self) { try Array("nor here".utf8).withUnsafeBytes { try pair.server.write($0) } }
    }
  }

  /// Returns the cipher text of `text`.
  private static func said(_ text: [UInt8], by connection: TLSConnection) throws -> [UInt8] {
    try text.withUnsafeBytes { try connection.write($0) }
    var records: [UInt8] = []
    connection.takeOutput { records += Array($0) }
    return records
  }

  /// Returns all bytes that can be read now.
  private static func heard(by connection: TLSConnection, room: Int) throws -> [UInt8] {
    var heard: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: room)
    while case .bytes(let count) = try buffer.withUnsafeMutableBytes({ try connection.read(into: $0) }) {
      heard += buffer.prefix(count)
    }
    return heard
  }
}
