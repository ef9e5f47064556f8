import APNSMockHTTPMessage
import Testing

@testable import APNSMockHTTP2Session

/// Memory that the sessions of one thread share, and memory that each has of its own.
@Suite struct SessionMemoryTests {
  /// Returns a header list that takes several frames, which nghttp2 encodes before it sends the first of them.
  private func longAnswer(_ letter: String) -> HeaderList {
    HeaderList([(":status", "200")] + (0..<5).map { ("field-\($0)", String(repeating: letter, count: 10_000)) })
  }

  /// Returns sessions of one thread, each with a response to send.
  private func sessions(_ letters: [String], _ pool: RequestStreamPool) throws -> [Pair] {
    try letters.map { letter in
      let pair = try Pair(pool: pool)
      try pair.pump()
      try pair.push()
      var up: [UInt8] = []
      pair.client.appendOutput(to: &up)
      try up.withUnsafeBytes { try pair.server.receive($0) }
      while let event = pair.server.nextEvent() {
        if case .request(let stream) = event { pair.server.respond(to: stream, headers: longAnswer(letter)) }
      }
      return pair
    }
  }

  private func answers(_ pair: Pair) -> [HeaderList] {
    pair.clientEvents.compactMap { if case .response(_, let response) = $0 { response.headers } else { nil } }
  }

  @Test func alternatingSessionsDoNotShareFrames() throws {
    let letters = ["a", "b"]
    let pairs = try sessions(letters, RequestStreamPool())
    // One frame of each session at a time, so that each finds what the other left in the shared block.
    var frames = 0
    var isDrained = [false, false]
    while isDrained.contains(false) {
      for (index, pair) in pairs.enumerated() {
        var down: [UInt8] = []
        isDrained[index] = pair.server.appendOutput(to: &down, upTo: 1)
        if !down.isEmpty { frames += 1 }
        pair.clientEvents += try down.withUnsafeBytes { try pair.client.receive($0) }
      }
    }
    #expect(frames >= 4)
    for (letter, pair) in zip(letters, pairs) { #expect(answers(pair) == [longAnswer(letter)]) }
  }

  @Test func sessionOutlivesOthersOnItsThread() throws {
    var pairs = try sessions(["a", "b"], RequestStreamPool())
    pairs.removeFirst()
    try pairs[0].pump()
    #expect(answers(pairs[0]) == [longAnswer("b")])
  }
}
