import NIOConcurrencyHelpers
import NIOCore

/// The open connections, so that a shutdown or a command reaches each, and the logs of recently closed ones.
package final class Connections: Sendable {
  /// Requests a connection's handler to shut down: send GOAWAY, finish the open streams, close.
  struct ShutdownRequested: Sendable {}

  /// Notifies a connection's handler that the active rules changed.
  struct RulesChanged: Sendable {}

  /// Counters since the server started.
  package struct Counts: Sendable {
    /// The number of accepted connections.
    public fileprivate(set) var opened = 0
    /// The number of completed TLS handshakes.
    public fileprivate(set) var handshakes = 0
    /// The number of TLS handshakes that failed or timed out.
    public fileprivate(set) var failedHandshakes = 0
  }

  private struct State {
    var counts = Counts()
    var open: [UInt64: (channel: any Channel, log: ConnectionLog)] = [:]
    /// Oldest first.
    var closed: [ConnectionLog] = []
    var refusals = LogThrottle()
  }

  /// The number of closed connections whose logs are kept.
  private static let closedLogLimit = 200

  private let state = NIOLockedValueBox(State())

  /// Registers an accepted connection until it closes.
  ///
  /// - Throws: `TooManyConnections`.
  func add(_ channel: any Channel, log: ConnectionLog) throws(TooManyConnections) {
    // Determined each time: one system call is cheap compared with a handshake, and the limit can be raised from
    // outside (`prlimit`).
    let limit = FileDescriptorBudget.providerConnections
    let isAdmitted = state.withLockedValue { state in
      guard state.open.count < limit else { return false }
      state.open[log.number] = (channel, log)
      state.counts.opened += 1
      return true
    }
    guard isAdmitted else { throw TooManyConnections(limit: limit) }
    channel.closeFuture.whenComplete { [self] _ in
      state.withLockedValue { state in
        guard let log = state.open.removeValue(forKey: log.number)?.log else { return }
        if state.closed.count == Self.closedLogLimit { state.closed.removeFirst() }
        state.closed.append(log)
      }
    }
  }

  /// Replaces the log of an open connection, whose client's address is known only now.
  func replace(_ log: ConnectionLog) {
    state.withLockedValue { $0.open[log.number]?.log = log }
  }

  /// Returns whether to log this time that a connection was refused: at most once a minute.
  func shouldLogRefusal() -> Bool { state.withLockedValue { $0.refusals.shouldLog() } }

  /// The logs of the open and the most recently closed connections, by number.
  package var logs: [ConnectionLog] {
    state.withLockedValue { $0.closed + $0.open.values.map(\.log) }.sorted { $0.number < $1.number }
  }

  /// Counts a completed or failed TLS handshake.
  func countHandshake(isDone: Bool) {
    state.withLockedValue { state in
      if isDone { state.counts.handshakes += 1 } else { state.counts.failedHandshakes += 1 }
    }
  }

  /// The current counters.
  package var counts: Counts { state.withLockedValue { $0.counts } }

  /// The number of open connections.
  package var openCount: Int { state.withLockedValue { $0.open.count } }

  /// Performs an action immediately on the open connections that match.
  ///
  /// - Returns: The logs of these connections, by number.
  package func perform(_ action: ConnectionAction, where predicate: (ConnectionLog) -> Bool) -> [ConnectionLog] {
    let matches = state.withLockedValue { Array($0.open.values) }.filter { predicate($0.log) }
    for (channel, _) in matches { channel.pipeline.fireUserInboundEventTriggered(action) }
    return matches.map(\.log).sorted { $0.number < $1.number }
  }

  /// Makes every connection evaluate the active rules.
  func notifyRulesChanged() {
    let open = state.withLockedValue { $0.open.values.map(\.channel) }
    for channel in open { channel.pipeline.fireUserInboundEventTriggered(RulesChanged()) }
  }

  /// Shuts down all connections: sends GOAWAY and waits until all are closed. Connections still open after
  /// `timeout` are closed immediately.
  ///
  /// - Parameter beforeClosing: Called before connections are closed because of the timeout.
  func shutDown(timeout: Duration, beforeClosing: @Sendable () async -> Void) async {
    let open = state.withLockedValue { $0.open.values.map(\.channel) }
    for channel in open { channel.pipeline.fireUserInboundEventTriggered(ShutdownRequested()) }
    await withTaskGroup(of: Bool.self) { group in
      group.addTask {
        for channel in open { try? await channel.closeFuture.get() }
        return true
      }
      group.addTask {
        try? await Task.sleep(for: timeout)
        return false
      }
      if await group.next() == false {
        await beforeClosing()
        for channel in open { channel.close(promise: nil) }
      }
      group.cancelAll()
    }
  }
}
