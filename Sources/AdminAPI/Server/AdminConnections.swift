internal import Logging
internal import MockAPNS
internal import NIOConcurrencyHelpers
internal import NIOCore

/// The open connections to the admin listener.
///
/// Some of those that may be open are in reserve, so that health checks are answered whatever other clients do. When all
/// others are open, a new connection takes the place of the longest idle one: one that received nothing since its last
/// response. If none is idle, it is one of the reserve, which `AdmissionHandler` serves only for a moment. When more than half
/// of the reserve is in use, those connections there that were answered are closed, the first ones first, so that the next one
/// finds a place. When all are open, further connections wait in the system's queue.
final class AdminConnections: Sendable {
  /// An inbound event that closes a connection if it is still idle.
  struct CloseIfIdle: Sendable {}

  private struct State {
    /// All accepted connections.
    var count = 0
    /// Those that are not in reserve.
    var regularCount = 0
    /// Those that belong to an event loop.
    var channels: [ObjectIdentifier: any Channel] = [:]
    /// Whether connections end after their current request.
    var isStopping = false
    /// The number of connections closed since freed memory was last returned to the system.
    var closedCount = 0
    var idle: [ObjectIdentifier: (since: NIODeadline, channel: any Channel, isRegular: Bool)] = [:]
    var throttle = LogThrottle()

    /// Removes the longest idle connection among the regular ones, or in the reserve.
    mutating func removeLongestIdle(isRegular: Bool) -> (any Channel)? {
      idle.filter { $0.value.isRegular == isRegular }.min { $0.value.since < $1.value.since }
        .flatMap { idle.removeValue(forKey: $0.key)?.channel }
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

  /// Counts an accepted connection, and decides whether it is a regular one, if necessary in place of an idle one, or one of
  /// the reserve.
  ///
  /// - Returns: Whether it is a regular one.
  func open() -> Bool {
    let (isRegular, idle, shouldLog) = state.withLockedValue { state -> (Bool, (any Channel)?, Bool) in
      state.count += 1
      let isFull = state.regularCount >= limit - reserve
      let idle = isFull ? state.removeLongestIdle(isRegular: true) : nil
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

  /// Adds a connection that belongs to an event loop now, which must call `close`.
  func add(_ channel: any Channel) {
    let isStopping = state.withLockedValue { state in
      state.channels[ObjectIdentifier(channel)] = channel
      return state.isStopping
    }
    // Later, because a channel must not be closed before it is registered.
    if isStopping {
      channel.eventLoop.execute { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
    }
  }

  /// Counts a closed connection, and returns freed memory to the system after a burst of them.
  ///
  /// - Parameters:
  ///   - channel: nil for one that never belonged to an event loop.
  ///   - isRegular: What `open()` returned.
  func close(_ channel: (any Channel)?, isRegular: Bool) {
    let isBurst = state.withLockedValue { state in
      state.count -= 1
      if isRegular { state.regularCount -= 1 }
      if let channel { state.channels[ObjectIdentifier(channel)] = nil }
      state.closedCount += 1
      return state.closedCount == Self.burst
    }
    if isBurst { MemoryBudget.trim { self.state.withLockedValue { $0.closedCount = 0 } } }
  }

  /// Ends each connection after its current request.
  func endAfterRequests() {
    let channels = state.withLockedValue { state in
      state.isStopping = true
      return Array(state.channels.values)
    }
    for channel in channels { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
  }

  /// Closes all connections.
  func closeAll() {
    for channel in state.withLockedValue({ Array($0.channels.values) }) { channel.close(promise: nil) }
  }

  /// Adds an idle connection.
  ///
  /// - Parameter isRegular: What `open()` returned.
  func addIdle(_ channel: any Channel, isRegular: Bool) {
    let answered = state.withLockedValue { state in
      state.idle[ObjectIdentifier(channel)] = (.now(), channel, isRegular)
      let isScarce = !isRegular && state.count - state.regularCount > reserve / 2
      return isScarce ? state.removeLongestIdle(isRegular: false) : nil
    }
    answered?.pipeline.fireUserInboundEventTriggered(CloseIfIdle())
  }

  /// Removes a connection that is in use or closed.
  func removeIdle(_ channel: any Channel) {
    state.withLockedValue { $0.idle[ObjectIdentifier(channel)] = nil }
  }
}
