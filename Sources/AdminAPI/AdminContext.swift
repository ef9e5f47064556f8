internal import Hummingbird
internal import Logging
internal import NIOCore

/// The context of one request: the framework's own, and the connection.
struct AdminContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// The connection of the request.
  let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    channel = source.channel
  }

  /// The context for routes, which need no connection.
  var basic: BasicRequestContext {
    var context = BasicRequestContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
    context.coreContext = coreContext
    return context
  }
}
