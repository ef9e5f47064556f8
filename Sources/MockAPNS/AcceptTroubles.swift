import Logging
import NIOCore

/// A connection that came when there were too many already.
struct TooManyConnections: Error, CustomStringConvertible {
  let limit: Int

  var description: String {
    "\(limit) connections are open, which is what the limit of open files leaves room for: raise it with ulimit -n"
  }
}

/// When the system does not hand over a connection, most often for want of descriptors, it is asked again a second later, and
/// the log tells of it. The connection waits in the system's queue.
///
/// NIO's own `AcceptBackoffHandler` does not help (2.101.2): the listener stays registered with epoll, which wakes it at
/// once, again and again. That ends when `autoRead` is switched off.
final class AcceptTroubles: ChannelInboundHandler {
  typealias InboundIn = Channel

  private static let pause = TimeAmount.seconds(1)

  private let logger: Logger
  private var news = SeldomNews()

  init(logger: Logger) {
    self.logger = logger
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard error is IOError else { return }
    if news.isDue() {
      logger.warning(
        "a connection cannot be taken, next try in a second: \(error). If files are too many, raise their limit with ulimit -n (told at most once a minute)"
      )
    }
    let channel = context.channel
    _ = channel.setOption(ChannelOptions.autoRead, value: false)
    context.eventLoop.scheduleTask(in: Self.pause) { channel.setOption(ChannelOptions.autoRead, value: true) }
  }
}
