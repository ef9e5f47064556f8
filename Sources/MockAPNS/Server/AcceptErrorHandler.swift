import Logging
import NIOCore

/// A connection beyond the limit of open connections.
struct TooManyConnections: Error, CustomStringConvertible {
  let limit: Int

  var description: String {
    "\(limit) connections are open, the maximum for the current limit of open files. Raise the limit with ulimit -n."
  }
}

/// Handles accept errors of a listener. When the system cannot accept a connection, most often for lack of file
/// descriptors, the handler logs a warning, at most once a minute, and pauses accepting for a second. The connection
/// waits in the system's queue. In the pause the process has some spare descriptors.
///
/// NIO's own `AcceptBackoffHandler` (2.101.2) does not help: the listener stays registered with epoll, which wakes
/// it again and again at once. Switching off `autoRead` ends that.
final class AcceptErrorHandler: ChannelInboundHandler {
  typealias InboundIn = Channel

  private static let pause = TimeAmount.seconds(1)

  private let logger: Logger
  private var throttle = LogThrottle()

  init(logger: Logger) {
    self.logger = logger
    _ = SpareDescriptors.shared.acquire()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard error is IOError else { return }
    if throttle.shouldLog() {
      logger.warning(
        "cannot accept a connection, retrying in one second: \(error). If too many files are open, raise the limit with ulimit -n (logged at most once a minute)"
      )
    }
    SpareDescriptors.shared.release()
    let channel = context.channel
    _ = channel.setOption(ChannelOptions.autoRead, value: false)
    Self.resume(channel)
  }

  /// Accepts connections again after a pause, or after another one if there are not even spare descriptors.
  private static func resume(_ channel: any Channel) {
    channel.eventLoop.scheduleTask(in: pause) {
      guard SpareDescriptors.shared.acquire() else {
        SpareDescriptors.shared.release()
        return resume(channel)
      }
      _ = channel.setOption(ChannelOptions.autoRead, value: true)
    }
  }
}
