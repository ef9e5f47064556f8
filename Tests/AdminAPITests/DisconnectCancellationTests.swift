import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import APNSMockAdminAPI

/// Callbacks for the disconnection of a client.
@Suite struct DisconnectCancellationTests {
  /// A connected channel with the handler that calls the callbacks.
  private static func connectedChannel() throws -> EmbeddedChannel {
    let channel = EmbeddedChannel(handler: HalfCloseHandler())
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    return channel
  }

  @Test func callbackRunsOnceWhenTheConnectionCloses() throws {
    let channel = try Self.connectedChannel()
    let calls = Atomic(0)
    let observer = DisconnectCancellation.observe(channel) { calls.add(1, ordering: .relaxed) }
    #expect(calls.load(ordering: .relaxed) == 0)
    _ = try channel.finish()
    #expect(calls.load(ordering: .relaxed) == 1)
    observer.end()
    #expect(calls.load(ordering: .relaxed) == 1)
  }

  @Test func callbackOnAClosedConnectionRunsImmediately() throws {
    let channel = try Self.connectedChannel()
    _ = try channel.finish()
    let calls = Atomic(0)
    _ = DisconnectCancellation.observe(channel) { calls.add(1, ordering: .relaxed) }
    #expect(calls.load(ordering: .relaxed) == 1)
  }

  /// A persistent connection may carry thousands of requests.
  @Test func completedRequestLeavesNoCallback() throws {
    let channel = try Self.connectedChannel()
    weak var kept: DisconnectCancellation.Observer?
    let calls = Atomic(0)
    do {
      let observer = DisconnectCancellation.observe(channel) { calls.add(1, ordering: .relaxed) }
      kept = observer
      observer.end()
    }
    #expect(kept == nil)
    _ = try channel.finish()
    #expect(calls.load(ordering: .relaxed) == 0)
  }
}
