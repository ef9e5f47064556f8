import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import Testing

@testable import APNSMockAdminAPI

/// Connections whose clients read slowly or not at all.
@Suite struct ResponseProgressTests {
  /// Keeps what is written until `read` is called, as the system does for a client that does not read.
  private final class Client: ChannelOutboundHandler {
    typealias OutboundIn = HTTPResponsePart

    private var unread: [EventLoopPromise<Void>] = []

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      if let promise { unread.append(promise) }
    }

    /// Reads all but the newest pieces.
    func read(allBut count: Int = 0) {
      let read = unread.dropLast(count)
      unread.removeFirst(read.count)
      for promise in read { promise.succeed() }
    }
  }

  private let client = Client()
  private let channel: EmbeddedChannel

  init() throws {
    channel = EmbeddedChannel(handlers: [client, ResponseProgressHandler()])
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
  }

  private func write(_ size: Int) {
    channel.write(HTTPResponsePart.body(ByteBuffer(repeating: 0, count: size)), promise: nil)
  }

  private func end() {
    client.read()
    _ = try? channel.finish(acceptAlreadyClosed: true)
  }

  @Test func anUnreadResponseEnds() throws {
    write(10)
    channel.embeddedEventLoop.advanceTime(by: .seconds(29))
    #expect(channel.isActive)
    channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    #expect(!channel.isActive)
    end()
  }

  /// A response without anything to send, such as that of a wait, may take any time.
  @Test func aResponseThatWasReadMayTakeAnyTime() throws {
    write(10)
    client.read()
    channel.embeddedEventLoop.advanceTime(by: .hours(1))
    #expect(channel.isActive)
    end()
  }

  @Test(arguments: [(ResponseProgressHandler.minimum, true), (ResponseProgressHandler.minimum - 1, false)])
  func aSlowReaderNeedsProgress(bytesInInterval: Int, stays: Bool) throws {
    write(bytesInInterval)
    for _ in 0..<5 where channel.isActive {
      write(bytesInInterval)
      client.read(allBut: 1)
      channel.embeddedEventLoop.advanceTime(by: ResponseProgressHandler.interval)
    }
    #expect(channel.isActive == stays)
    end()
  }
}
