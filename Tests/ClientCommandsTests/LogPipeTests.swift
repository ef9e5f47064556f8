import Dispatch
import NIOConcurrencyHelpers
import APNSMockTestSupport
import Testing

@testable import APNSMockClientCommands

/// The queue between loggers and standard error.
@Suite struct LogPipeTests {
  @Test func blockedStreamDoesNotBlockLogging() async {
    let stream = Stream()
    let pipe = LogPipe(capacity: 10, flushTimeout: .seconds(120)) { stream.write($0) }
    // The first lines are being written, or wait in the queue; none of these calls blocks.
    for number in 0..<10 { pipe.write(Array("\(number)\n".utf8), gap: Self.gap) }
    #expect(stream.text.isEmpty)
    stream.open()
    await onOwnThread { pipe.flush() }
    // 5 lines of 2 bytes fit into 10.
    #expect(stream.text == "0\n1\n2\n3\n4\n-5\n")
  }

  @Test func gapIsReportedWhereLinesAreMissing() async {
    let stream = Stream()
    let pipe = LogPipe(capacity: 4, flushTimeout: .seconds(120)) { stream.write($0) }
    for line in ["a\n", "b\n", "c\n"] { pipe.write(Array(line.utf8), gap: Self.gap) }
    stream.open()
    await onOwnThread { pipe.flush() }
    pipe.write(Array("d\n".utf8), gap: Self.gap)
    await onOwnThread { pipe.flush() }
    #expect(stream.text == "a\nb\n-1\nd\n")
  }

  @Test func linesAreCompleteAndInOrder() async {
    let stream = Stream()
    let pipe = LogPipe(flushTimeout: .seconds(120)) { stream.write($0) }
    stream.open()
    let lines = (0..<5000).map { "line \($0)\n" }
    for line in lines { pipe.write(Array(line.utf8), gap: Self.gap) }
    await onOwnThread { pipe.flush() }
    #expect(stream.text == lines.joined())
    #expect(stream.writes.allSatisfy { $0.hasSuffix("\n") && $0.utf8.count <= 4096 })
  }

  @Test func flushEndsWithoutAReader() async {
    let stream = Stream()
    let pipe = LogPipe(flushTimeout: .milliseconds(100)) { stream.write($0) }
    pipe.write(Array("a\n".utf8), gap: Self.gap)
    await onOwnThread { pipe.flush() }
    #expect(stream.text.isEmpty)
    stream.open()
  }

  @Sendable private static func gap(_ count: Int) -> [UInt8] { Array("-\(count)\n".utf8) }

  /// A stream whose writes block until it is opened.
  private final class Stream: Sendable {
    private let gate = DispatchSemaphore(value: 0)
    private let written = NIOLockedValueBox<[String]>([])

    var writes: [String] { written.withLockedValue { $0 } }
    var text: String { writes.joined() }

    func open() { gate.signal() }

    func write(_ bytes: [UInt8]) {
      gate.wait()
      gate.signal()
      written.withLockedValue { $0.append(String(decoding: bytes, as: UTF8.self)) }
    }
  }
}
