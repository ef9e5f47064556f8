@testable import MockAPNS
import APNSMockHTTP2Session
import APNSMockInbox
import NIOCore
import Testing

@Suite struct ConnectionInputTests {
  // After the creation of the input.
  private let start = NIODeadline.now() + .seconds(1)

  private func input(receivedBytes: Int = 1, exhausted: Bool = false) -> ConnectionInput {
    var input = ConnectionInput()
    input.received(byteCount: receivedBytes, at: start, machineTime: 1)
    _ = input.framesWritten(isWindowExhausted: exhausted)
    return input
  }

  /// The number of received bytes, of those of requests and of key updates, and whether that is a flood.
  @Test(
    arguments: [
      (8 << 20, 0, 0, false), (8 << 20 + 8, 0, 0, true), (8 << 20 + 8, 1, 0, false), (16 << 20, 1 << 20, 0, false),
      (0, 0, 32, false), (0, 0, 33, true), (1 << 16, 0, 33, false), (1 << 16, 0, 34, true),
    ])
  func floods(received: Int, ofRequests: Int, keyUpdates: Int, isFlood: Bool) {
    let input = input(receivedBytes: received)
    #expect((input.floodCloseReason(requestBytes: ofRequests, keyUpdates: keyUpdates) != nil) == isFlood)
  }

  @Test func aFurtherCheckIsNeededWhenTheWindowBecomesExhausted() {
    var input = input()
    var changes: [Bool] = []
    for isExhausted in [false, true, true, false, true] {
      changes.append(input.framesWritten(isWindowExhausted: isExhausted))
    }
    #expect(changes == [false, true, false, false, true])
  }

  /// The idle timeout and the time since the last input in seconds, whether the window is exhausted, and the next check.
  @Test(
    arguments: [
      (3600, 0, false, 10), (3600, 3595, false, 5), (3600, 3600, false, 10), (4, 0, false, 4), (4, 9, false, 4),
      (3600, 0, true, 5), (3600, 3597, true, 3),
    ] as [(Int64, Int64, Bool, Int64)])
  func nextChecks(row: (Int64, Int64, Bool, Int64)) {
    let input = input(exhausted: row.2)
    #expect(input.nextCheck(idleTimeout: .seconds(row.0), now: start + .seconds(row.1)) == .seconds(row.3))
  }

  /// The seconds since the last input, whether the window is exhausted, the client reads and frames wait for the store.
  @Test(
    arguments: [
      (5, true, true, false, .closeExhausted), (4, true, true, false, .wait), (5, true, true, true, .wait),
      (5, false, true, false, .wait), (60, false, true, false, .closeIdle), (60, true, true, false, .closeExhausted),
      (60, true, true, true, .closeIdle), (11, false, true, false, .checkStreams(isQuiet: false, resetsOverdue: true)),
      (11, false, false, false, .checkStreams(isQuiet: false, resetsOverdue: false)),
      (11, false, true, true, .checkStreams(isQuiet: false, resetsOverdue: false)),
    ] as [(Int64, Bool, Bool, Bool, ConnectionInput.CheckAction)])
  func checks(row: (Int64, Bool, Bool, Bool, ConnectionInput.CheckAction)) {
    var input = input(exhausted: row.1)
    let action = input.checkElapsed(
      idleTimeout: .seconds(60), isWritable: row.2, holdsFrames: row.3, now: start + .seconds(row.0))
    #expect(action == row.4)
  }

  @Test func aClientThatDoesNotReadIsStalledAfterSomeChecks() {
    var input = input()
    var now = start
    func check(isWritable: Bool = false) -> ConnectionInput.CheckAction {
      now = now + .seconds(11)
      return input.checkElapsed(idleTimeout: .hours(1), isWritable: isWritable, holdsFrames: false, now: now)
    }
    for _ in 1...HTTP2Limits.maxOverdueChecks { #expect(check() != .closeStalled) }
    input.clientReads()
    for _ in 1...HTTP2Limits.maxOverdueChecks { #expect(check() != .closeStalled) }
    #expect(check() == .closeStalled)
    #expect(check(isWritable: true) == .checkStreams(isQuiet: true, resetsOverdue: true))
  }

  @Test func anEndIsReportedWhenSomethingIsNew() throws {
    var end = ConnectionEndReport()
    func add(
      byClient: Bool, isOrderly: Bool = false, isReset: Bool = false, isFinal: Bool = false, now: Int64
    ) -> ConnectionEnd.Closing? {
      end.add(
        byClient: byClient, isOrderly: isOrderly, isReset: isReset, isFinal: isFinal, lastReceivedAt: 1, now: now)
    }
    let first = try #require(add(byClient: true, now: 5))
    #expect(first.initiator == .client && first.at == 5 && !first.isOrderly && !first.isReset && !first.isFinal)
    #expect(add(byClient: false, now: 6) == nil, "the first report says who ended the connection")
    let last = try #require(add(byClient: false, isFinal: true, now: 7))
    #expect(last.initiator == .client && last.at == 5 && last.isOrderly && last.isFinal)
    end.socketFailed(.reset)
    #expect(try #require(add(byClient: false, isFinal: true, now: 8)).isReset)
  }

  @Test func anEndAfterTheServerClosedTheSocketOrAnErrorIsNotOrderly() throws {
    for failure in [ConnectionEndReport.SocketFailure?.none, .reset, .other] {
      var end = ConnectionEndReport()
      if let failure { end.socketFailed(failure) } else { end.socketClosing() }
      end.socketFailed(.other)
      let closing = end.add(
        byClient: false, isOrderly: false, isReset: false, isFinal: true, lastReceivedAt: 1, now: 5)
      #expect(closing?.isOrderly == false)
      #expect(closing?.isReset == (failure == .reset))
    }
  }
}
