import Logging
import Synchronization
import Testing

@testable import APNSMockCommand

/// Log lines in both formats.
@Suite struct LogLineTests {
  private static func line(
    _ message: Logger.Message, level: Logger.Level = .info, _ metadata: Logger.Metadata = [:]
  ) -> LogLine {
    LogLine(
      time: 1_700_000_000_123,
      event: LogEvent(
        level: level, message: message, metadata: nil, source: "test", file: "file", function: "function", line: 1),
      metadata: metadata)
  }

  @Test func textHasTimeLevelMessageAndMetadata() {
    let line = Self.line("a push was rejected", ["reason": "BadTopic", "connection": "c17"])
    #expect(line.text(colored: false) == "22:13:20.123 info     a push was rejected connection=c17 reason=BadTopic")
  }

  @Test func columnsAreAligned() {
    let texts = Logger.Level.allCases.map { Self.line("x", level: $0).text(colored: false) }
    #expect(Set(texts.map(\.count)).count == 1)
  }

  @Test func onlyTheLevelIsColored() {
    #expect(Self.line("x", level: .error).text(colored: true) == "22:13:20.123 \u{1B}[31merror\u{1B}[0m    x")
  }

  @Test(arguments: [
    ("two\nlines", #"two\nlines"#), ("a\u{1B}[31mcolour", #"a\u{1B}[31mcolour"#), ("a\u{2028}b", #"a\u{2028}b"#),
    ("Grüße", "Grüße"),
  ])
  func peerTextStaysOnOneLine(_ said: String, _ written: String) {
    let text = Self.line("\(said)", ["topic": "\(said)"]).text(colored: false)
    #expect(text.hasSuffix("\(written) topic=\(written)"))
  }

  @Test func jsonIsOneObject() {
    let line = Self.line("a \"push\"\n", level: .warning, ["connection": "c17", "level": "mine"])
    #expect(
      String(decoding: line.json, as: UTF8.self)
        == #"{"time":"2023-11-14T22:13:20.123Z","level":"warning","message":"a \"push\"\u000a","connection":"c17"}"#)
  }

  @Test func jsonKeepsListsAndObjects() {
    let line = Self.line(
      "ready", ["apns": ["a:1", "b:2"], "limits": ["records": "5", "bytes": .stringConvertible(7)]])
    let json = String(decoding: line.json, as: UTF8.self)
    #expect(json.hasSuffix(#""message":"ready","apns":["a:1","b:2"],"limits":{"bytes":7,"records":"5"}}"#))
  }

  @Test(arguments: LogFormat.allCases)
  func handlerWritesCompleteLinesFromItsLevelUp(_ format: LogFormat) {
    let lines = Lines()
    var logger = Logger(label: "test") { _ in
      LineLogHandler(format: format, level: .notice, colored: false) { lines.add($0) }
    }
    logger[metadataKey: "connection"] = "c1"
    logger.info("too little")
    logger.notice("enough", metadata: ["connection": "c2", "more": "yes"])
    let written = lines.all
    #expect(written.count == 1)
    #expect(written.first?.hasSuffix("\n") == true)
    #expect(written.first?.contains("enough") == true)
    #expect(written.first?.contains("c2") == true, "the event's own metadata wins")
    #expect(written.first?.contains("c1") == false)
  }

  /// The lines that a handler wrote.
  private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func add(_ bytes: [UInt8]) { lines.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) } }
  }
}
