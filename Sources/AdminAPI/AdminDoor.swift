internal import HummingbirdCore
internal import Logging
internal import MockAPNS

/// How many connections to the admin listener are open. Those that are too many wait in the system's queue, and the log tells
/// of it.
struct AdminDoor: AvailableConnectionsDelegate {
  let limit = Descriptors.forAdministration
  let logger: Logger
  private var count = 0
  private var news = SeldomNews()

  init(logger: Logger) { self.logger = logger }

  mutating func connectionOpened() {
    count += 1
    guard count == limit, news.isDue() else { return }
    logger.warning(
      "\(count) connections to the admin listener are open, further ones have to wait until one of them is closed (told at most once a minute)"
    )
  }

  mutating func connectionClosed() { count -= 1 }

  func isAcceptingNewConnections() -> Bool { count < limit }
}
