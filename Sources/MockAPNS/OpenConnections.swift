import NIOCore
import NIOConcurrencyHelpers

/// The connections that are open now, so that a shutdown reaches each.
final class OpenConnections: Sendable {
  /// Tells a connection's handler to say goodbye: GOAWAY, finish what is open, close.
  struct Goodbye: Sendable {}

  private let channels = NIOLockedValueBox<[UInt64: any Channel]>([:])

  func add(_ channel: any Channel, number: UInt64) {
    channels.withLockedValue { $0[number] = channel }
    channel.closeFuture.whenComplete { [self] _ in
      channels.withLockedValue { _ = $0.removeValue(forKey: number) }
    }
  }

  /// Says goodbye to every connection and returns when all are closed, at the latest after `patience`, when the rest is
  /// cut off.
  func shutDown(patience: Duration) async {
    let open = channels.withLockedValue { Array($0.values) }
    for channel in open { channel.pipeline.fireUserInboundEventTriggered(Goodbye()) }
    await withTaskGroup(of: Bool.self) { group in
      group.addTask {
        for channel in open { try? await channel.closeFuture.get() }
        return true
      }
      group.addTask {
        try? await Task.sleep(for: patience)
        return false
      }
      if await group.next() == false {
        for channel in open { channel.close(promise: nil) }
      }
      group.cancelAll()
    }
  }
}
