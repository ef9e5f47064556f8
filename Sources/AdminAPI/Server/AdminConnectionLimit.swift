internal import Dispatch
internal import HummingbirdCore
internal import Logging
internal import MockAPNS
internal import NIOConcurrencyHelpers
internal import NIOCore

/// The limit on the open connections to the admin listener, for the web framework.
struct AdminConnectionLimit: AvailableConnectionsDelegate {
  let connections: AdminConnections

  func connectionOpened() { connections.open() }

  func connectionClosed() { connections.close() }

  func isAcceptingNewConnections() -> Bool { connections.hasCapacity }
}

/// Accepts connections as they come, instead of ten at a time as the web framework does when it is busy: a health check on a
/// new connection is answered by `AdmissionHandler` without the framework. Added to the listening channel, before the framework's
/// handlers.
final class EagerAcceptHandler: ChannelInboundHandler {
  typealias InboundIn = Channel

  private let connections: AdminConnections

  init(connections: AdminConnections) { self.connections = connections }

  func channelReadComplete(context: ChannelHandlerContext) {
    context.fireChannelReadComplete()
    // Otherwise the framework's handler reads again when a connection is closed.
    if connections.hasCapacity { context.read() }
  }
}

/// The open connections to the admin listener.
///
/// Some of those that may be open are in reserve, so that health checks are answered whatever other clients do. When all
/// others are open, a new connection takes the place of the longest idle one: one that received nothing since its last
/// response. If none is idle, it is one of the reserve, which `AdmissionHandler` serves only for a moment. When all are
/// open, further connections wait in the system's queue.
final class AdminConnections: Sendable {
  /// An inbound event that closes a connection if it is still idle.
  struct CloseIfIdle: Sendable {}

  private struct State {
    /// All open connections.
    var count = 0
    /// Those that are not in reserve.
    var regularCount = 0
    /// The number of connections closed since freed memory was last returned to the system.
    var closedCount = 0
    var idle: [ObjectIdentifier: (since: NIODeadline, channel: any Channel)] = [:]
    var throttle = LogThrottle()

    /// Removes the longest idle connection.
    mutating func removeLongestIdle() -> (any Channel)? {
      idle.min { $0.value.since < $1.value.since }.flatMap { idle.removeValue(forKey: $0.key)?.channel }
    }
  }

  /// The number of closed connections after which freed memory is returned to the system.
  private static let burst = 64

  /// The maximum number of open connections.
  let limit: Int
  /// The number of them in reserve: 32, at most a quarter.
  let reserve: Int
  private let logger: Logger
  private let state = NIOLockedValueBox(State())

  init(limit: Int = FileDescriptorBudget.adminConnections, logger: Logger) {
    self.limit = limit
    self.logger = logger
    reserve = min(32, limit / 4)
  }

  /// Whether another connection may be accepted.
  var hasCapacity: Bool { state.withLockedValue { $0.count < limit } }

  /// Counts an accepted connection.
  func open() { state.withLockedValue { $0.count += 1 } }

  /// Counts a closed connection, and returns freed memory to the system after a burst of them.
  func close() {
    let isBurst = state.withLockedValue { state in
      state.count -= 1
      state.closedCount += 1
      return state.closedCount == Self.burst
    }
    if isBurst { MemoryBudget.trim { self.state.withLockedValue { $0.closedCount = 0 } } }
  }

  /// Decides whether a new connection is a regular one, if necessary in place of an idle one, or one of the reserve.
  ///
  /// - Returns: Whether it is a regular one, which must call `leave()` when it is closed.
  func enter() -> Bool {
    let (isRegular, idle, shouldLog) = state.withLockedValue { state -> (Bool, (any Channel)?, Bool) in
      let isFull = state.regularCount >= limit - reserve
      let idle = isFull ? state.removeLongestIdle() : nil
      guard !isFull || idle != nil else { return (false, nil, state.throttle.shouldLog()) }
      state.regularCount += 1
      return (true, idle, false)
    }
    idle?.pipeline.fireUserInboundEventTriggered(CloseIfIdle())
    if shouldLog {
      logger.warning(
        """
        \(limit - reserve) connections to the admin listener are open and none is idle; on further ones only \
        /livez, /readyz and /metrics are served until one of them is closed (logged at most once a minute)
        """)
    }
    return isRegular
  }

  /// Counts a closed regular connection.
  func leave() { state.withLockedValue { $0.regularCount -= 1 } }

  /// Adds an idle connection.
  func addIdle(_ channel: any Channel) {
    state.withLockedValue { $0.idle[ObjectIdentifier(channel)] = (.now(), channel) }
  }

  /// Removes a connection that is in use or closed.
  func removeIdle(_ channel: any Channel) {
    state.withLockedValue { $0.idle[ObjectIdentifier(channel)] = nil }
  }
}
