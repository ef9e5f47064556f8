internal import Hummingbird
internal import Logging
internal import NIOCore

/// What belongs to one request beside itself: the usual, and its connection.
struct AdminContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// The connection it came on.
  let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    channel = source.channel
  }

  /// The same for routes, which need no connection.
  var basic: BasicRequestContext {
    var context = BasicRequestContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
    context.coreContext = coreContext
    return context
  }
}
