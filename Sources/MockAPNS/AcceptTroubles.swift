import Logging
import NIOCore

/// A connection that came when there were too many already.
struct TooManyConnections: Error {}

/// Tells of connections that the system does not hand over, most often for want of descriptors. They wait in its queue
/// until NIO's `AcceptBackoffHandler`, which stands before this one, tries again.
final class AcceptTroubles: ChannelInboundHandler {
  typealias InboundIn = Channel

  private let logger: Logger
  private var news = SeldomNews()

  init(logger: Logger) {
    self.logger = logger
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard error is IOError, news.isDue() else { return }
    logger.warning(
      "a connection cannot be taken, next try in a second: \(error). If files are too many, raise their limit with ulimit -n (told at most once a minute)"
    )
  }
}

/// What happens often and is told seldom.
struct SeldomNews {
  private static let interval = TimeAmount.minutes(1)
  private var last: NIODeadline?

  /// Whether it is told this time.
  mutating func isDue() -> Bool {
    let now = NIODeadline.now()
    if let last, now - last < Self.interval { return false }
    last = now
    return true
  }
}
