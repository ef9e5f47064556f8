@testable import MockAPNS
import APNSMockRules
import NIOCore
import APNSMockNotation
import Testing

@Suite struct SmallPartsTests {
  @Test(arguments: [
    ("127.0.0.1:2197", MockServer.Endpoint(host: "127.0.0.1", port: 2197)),
    ("localhost:0", MockServer.Endpoint(host: "localhost", port: 0)),
    ("[::1]:443", MockServer.Endpoint(host: "::1", port: 443)), ("::1:443", nil), ("localhost", nil),
    ("localhost:", nil),
    ("localhost:70000", nil), (":1", nil), ("localhost:-1", nil),
  ])
  func endpoints(text: String, expected: MockServer.Endpoint?) {
    #expect(MockServer.Endpoint(text) == expected)
    if let expected { #expect(MockServer.Endpoint(expected.description) == expected) }
  }

  @Test func clientErrorsAreLoggedAFewTimesAMinute() {
    let clientErrorLog = ClientErrorLog()
    let began = NIODeadline.now()
    for _ in 1..<ClientErrorLog.limit { #expect(clientErrorLog.add(.handshake, of: "a", at: began) == .logged) }
    #expect(clientErrorLog.add(.handshake, of: "a", at: began) == .loggedLast)
    #expect(clientErrorLog.add(.handshake, of: "a", at: began + .seconds(59)) == .suppressed)
    #expect(clientErrorLog.add(.notHTTP2, of: "a", at: began) == .logged)
    #expect(clientErrorLog.add(.handshake, of: "b", at: began) == .logged)
    #expect(clientErrorLog.add(.handshake, of: "a", at: began + .seconds(60)) == .logged)
  }

  @Test func oldHostsAreEvicted() {
    let clientErrorLog = ClientErrorLog()
    for host in 0..<3000 {
      #expect(clientErrorLog.add(.slowness, of: "\(host)") == .logged)
      #expect(clientErrorLog.count <= 1024)
    }
  }

  @Test func frozenClockMovesOnlyWhenAdvanced() {
    let clock = ServerClock()
    clock.freeze(at: 1_000_000)
    #expect(clock.now == 1_000_000)
    clock.advance(by: 3_600_000)
    #expect(clock.now == 4_600_000)
    #expect(clock.mode == .frozen)
    clock.advance(by: -600_000)
    #expect(clock.now == 4_000_000)
    clock.runReal()
    #expect(clock.mode == .real)
    #expect(clock.now > 1_000_000_000_000)
  }

  @Test func advancedClockRunsAhead() {
    let clock = ServerClock()
    let before = clock.now
    clock.advance(by: 7_200_000)
    #expect(clock.now >= before + 7_200_000)
    #expect(clock.mode == .real)
    clock.advance(by: .max)
    #expect(clock.now > before, "no overflow")
    clock.runReal()
    #expect(clock.now < before + 7_200_000)
  }

  @Test(arguments: [Int64.max, .min, 320_000_000_000_000, -320_000_000_000_000])
  func clockStaysWithinFormattableYears(_ change: Int64) {
    let edge = change > 0 ? TimestampFormat.range.upperBound : TimestampFormat.range.lowerBound
    let clock = ServerClock()
    for isFrozen in [false, true] {
      if isFrozen { clock.freeze(at: change) }
      for _ in 0..<3 { clock.advance(by: change) }
      #expect(abs(clock.now - edge) < 60_000)
      clock.advance(by: change > 0 ? -86_400_000 : 86_400_000)
      #expect(abs(abs(clock.now - edge) - 86_400_000) < 60_000, "it moves on from where it was seen")
    }
  }

  @Test func identifiersRepeatForASeedAndDifferOtherwise() {
    func ids(seed: UInt64, connection: UInt64) -> [String] {
      var source = IdentifierSource(seed: seed, connection: connection)
      return (0..<100).map { _ in
        var bytes = [UInt8](repeating: 0, count: IdentifierSource.length)
        bytes.withUnsafeMutableBufferPointer { source.write(.upperCase, over: $0) }
        return String(decoding: bytes, as: UTF8.self)
      }
    }
    #expect(ids(seed: 1, connection: 1) == ids(seed: 1, connection: 1))
    let all = ids(seed: 1, connection: 1) + ids(seed: 1, connection: 2) + ids(seed: 2, connection: 1)
    #expect(Set(all).count == 300)
    #expect(all.allSatisfy { $0.wholeMatch(of: /[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}/) != nil })
  }

  @Test func readerSeesEachPublishedValue() {
    let published = PublishedValue([1])
    var reader = PublishedValueReader(published)
    var isNew = reader.refresh()
    #expect(!isNew)
    #expect(reader.value == [1])
    published.update { $0.append(2) }
    isNew = reader.refresh()
    #expect(isNew)
    #expect(reader.value == [1, 2])
  }
}
