public import Faults
import NIOConcurrencyHelpers
import NIOCore

/// Something that is done to a connection at once, because somebody asked for it.
public enum ConnectionOrder: Sendable {
  /// GOAWAY. There is no push that triggered it, so `before_this` and `this` both name the last stream that came.
  case goAway(Action.GoAwayOrder)
  /// TCP RST.
  case reset
  /// FIN without GOAWAY.
  case close
}

/// The connections that are open now, so that a shutdown or an order reaches each, and the logs of those that were.
public final class Connections: Sendable {
  /// Tells a connection's handler to say goodbye: GOAWAY, finish what is open, close.
  struct Goodbye: Sendable {}

  /// Tells a connection's handler that other rules are in force.
  struct RulesChanged: Sendable {}

  /// What was counted since the server started.
  public struct Counts: Sendable {
    /// How many connections were accepted.
    public fileprivate(set) var opened = 0
    /// How many TLS handshakes came to their end.
    public fileprivate(set) var handshakes = 0
    /// How many TLS handshakes went wrong, or took too long.
    public fileprivate(set) var failedHandshakes = 0
  }

  private struct State {
    var counts = Counts()
    var open: [UInt64: (channel: any Channel, log: ConnectionLog)] = [:]
    /// Oldest first.
    var closed: [ConnectionLog] = []
    var refusals = SeldomNews()
  }

  /// How many connections that ended are remembered.
  private static let memory = 200

  private let state = NIOLockedValueBox(State())

  /// - Throws: `TooManyConnections`.
  func add(_ channel: any Channel, log: ConnectionLog) throws(TooManyConnections) {
    // Asked each time: it is a system call beside a handshake, and a limit can be raised from outside (prlimit).
    let limit = Descriptors.forProviders
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
        if state.closed.count == Self.memory { state.closed.removeFirst() }
        state.closed.append(log)
      }
    }
  }

  /// Whether the log tells this time that a connection was not taken.
  func isRefusalNews() -> Bool { state.withLockedValue { $0.refusals.isDue() } }

  /// The logs of the connections that are open, and of the last ones that ended, by their numbers.
  public var logs: [ConnectionLog] {
    state.withLockedValue { $0.closed + $0.open.values.map(\.log) }.sorted { $0.number < $1.number }
  }

  /// A TLS handshake is over.
  func countHandshake(isDone: Bool) {
    state.withLockedValue { state in
      if isDone { state.counts.handshakes += 1 } else { state.counts.failedHandshakes += 1 }
    }
  }

  /// What was counted until now.
  public var counts: Counts { state.withLockedValue { $0.counts } }

  /// How many are open.
  public var openCount: Int { state.withLockedValue { $0.open.count } }

  /// Does something to the open connections that are meant.
  ///
  /// - Returns: their logs, by their numbers.
  public func carryOut(_ order: ConnectionOrder, where isMeant: (ConnectionLog) -> Bool) -> [ConnectionLog] {
    let meant = state.withLockedValue { Array($0.open.values) }.filter { isMeant($0.log) }
    for (channel, _) in meant { channel.pipeline.fireUserInboundEventTriggered(order) }
    return meant.map(\.log).sorted { $0.number < $1.number }
  }

  /// Lets every connection look at the rules that are in force now.
  func lookAtRules() {
    let open = state.withLockedValue { $0.open.values.map(\.channel) }
    for channel in open { channel.pipeline.fireUserInboundEventTriggered(RulesChanged()) }
  }

  /// Says goodbye to every connection and returns when all are closed, at the latest after `patience`, when the rest is
  /// cut off.
  func shutDown(patience: Duration) async {
    let open = state.withLockedValue { $0.open.values.map(\.channel) }
    for channel in open { channel.pipeline.fireUserInboundEventTriggered(Goodbye()) }
    await withTaskGroup(of: Bool.self) { group in
      group.addTask {
        for channel in open { try? await channel.closeFuture.get() }
        return true
      }
      group.addTask {
        try? await Task.sleep(for: patience)
        return false
      }
      if await group.next() == false {
        for channel in open { channel.close(promise: nil) }
      }
      group.cancelAll()
    }
  }
}
