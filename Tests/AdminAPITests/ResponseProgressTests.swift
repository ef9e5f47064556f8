import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import Testing

@testable import AdminAPI

/// Connections whose clients do not read. In an `EmbeddedChannel`, a client reads what is flushed.
@Suite struct ResponseProgressTests {
  private static func connectedChannel() throws -> EmbeddedChannel {
    let channel = EmbeddedChannel(handler: ResponseProgressHandler())
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    return channel
  }

  private static func write(_ size: Int, to channel: EmbeddedChannel) {
    channel.write(HTTPResponsePart.body(ByteBuffer(repeating: 0, count: size)), promise: nil)
  }

  @Test func anUnreadResponseEnds() throws {
    let channel = try Self.connectedChannel()
    Self.write(10, to: channel)
    channel.embeddedEventLoop.advanceTime(by: .seconds(29))
    #expect(channel.isActive)
    channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    #expect(!channel.isActive)
  }

  /// A response without anything to send, such as that of a wait, may take any time.
  @Test func aResponseThatWasReadMayTakeAnyTime() throws {
    let channel = try Self.connectedChannel()
    Self.write(10, to: channel)
    channel.flush()
    channel.embeddedEventLoop.advanceTime(by: .hours(1))
    #expect(channel.isActive)
    _ = try channel.finish()
  }

  @Test(arguments: [(ResponseProgressHandler.minimum, true), (ResponseProgressHandler.minimum - 1, false)])
  func aSlowReaderNeedsProgress(bytesInInterval: Int, stays: Bool) throws {
    let channel = try Self.connectedChannel()
    Self.write(1, to: channel)
    for _ in 0..<5 where channel.isActive {
      // Flushes what is waiting, except for one byte.
      Self.write(bytesInInterval - 1, to: channel)
      channel.flush()
      Self.write(1, to: channel)
      channel.embeddedEventLoop.advanceTime(by: ResponseProgressHandler.interval)
    }
    #expect(channel.isActive == stays)
    _ = try? channel.finish(acceptAlreadyClosed: true)
  }
}
