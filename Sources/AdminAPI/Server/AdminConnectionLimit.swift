internal import CMemory
internal import Dispatch
internal import HummingbirdCore
internal import Logging
internal import MockAPNS
internal import NIOConcurrencyHelpers
internal import NIOCore

/// A limit on the open connections to the admin listener. At the limit, the longest idle connection is closed; if
/// none is idle, further connections wait in the system's queue and a warning is logged.
struct AdminConnectionLimit: AvailableConnectionsDelegate {
  let connections: AdminConnections
  let logger: Logger
  private var throttle = LogThrottle()

  init(connections: AdminConnections, logger: Logger) {
    self.connections = connections
    self.logger = logger
  }

  mutating func connectionOpened() {
    guard !connections.open(), throttle.shouldLog() else { return }
    logger.warning(
      "\(connections.limit) connections to the admin listener are open; further ones wait until one of them is closed (logged at most once a minute)"
    )
  }

  mutating func connectionClosed() { connections.close() }

  func isAcceptingNewConnections() -> Bool { connections.hasCapacity }
}

/// The open connections to the admin listener, and the idle ones among them: those that received nothing since their
/// last response.
final class AdminConnections: Sendable {
  /// An inbound event that closes a connection if it is still idle.
  struct CloseIfIdle: Sendable {}

  private struct State {
    var count = 0
    /// The number of connections closed since freed memory was last returned to the system.
    var closedCount = 0
    var idle: [ObjectIdentifier: (since: NIODeadline, channel: any Channel)] = [:]

    /// Removes the longest idle connection.
    mutating func removeLongestIdle() -> (any Channel)? {
      idle.min { $0.value.since < $1.value.since }.flatMap { idle.removeValue(forKey: $0.key)?.channel }
    }
  }

  /// The number of closed connections after which freed memory is returned to the system.
  private static let burst = 64
  /// The delay before memory is returned, during which more connections may be closed. Also the minimum interval
  /// between two returns.
  private static let burstEnd = DispatchTimeInterval.seconds(2)

  /// The maximum number of open connections.
  let limit: Int
  private let state = NIOLockedValueBox(State())

  init(limit: Int = FileDescriptorBudget.adminConnections) { self.limit = limit }

  /// Whether another connection may be accepted.
  var hasCapacity: Bool { state.withLockedValue { $0.count < limit } }

  /// Counts a new connection; at the limit, closes the longest idle one.
  ///
  /// - Returns: Whether another connection can be accepted, now or as soon as the idle one is closed.
  func open() -> Bool {
    let (isFull, idle) = state.withLockedValue { state in
      state.count += 1
      return state.count < limit ? (false, nil) : (true, state.removeLongestIdle())
    }
    idle?.pipeline.fireUserInboundEventTriggered(CloseIfIdle())
    return !isFull || idle != nil
  }

  /// Counts a closed connection, and returns freed memory to the system after a burst of them.
  func close() {
    let isBurst = state.withLockedValue { state in
      state.count -= 1
      state.closedCount += 1
      return state.closedCount == Self.burst
    }
    guard isBurst else { return }
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + Self.burstEnd) {
      self.state.withLockedValue { $0.closedCount = 0 }
      // glibc returns only the free memory at the end of an arena. Measured: 300 clients that disconnected without
      // reading their pages of 1,000 pushes leave 28 MiB without this call, 4 MiB with it.
      apns_return_freed_memory()
    }
  }

  /// Adds an idle connection; at the limit, closes the longest idle one.
  func addIdle(_ channel: any Channel) {
    let idle = state.withLockedValue { state in
      state.idle[ObjectIdentifier(channel)] = (.now(), channel)
      return state.count < limit ? nil : state.removeLongestIdle()
    }
    idle?.pipeline.fireUserInboundEventTriggered(CloseIfIdle())
  }

  /// Removes a connection that is in use or closed.
  func removeIdle(_ channel: any Channel) {
    state.withLockedValue { $0.idle[ObjectIdentifier(channel)] = nil }
  }
}
