import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
internal import APNSMockNotation

/// A connection of a simulation: the state that the server keeps, and what the provider knows of it.
final class SimulatedConnection {
  /// A stream that the provider has opened and that has not ended.
  struct Stream {
    /// The delayed exchange; nil if the server does nothing more on the stream.
    var exchange: FaultedExchange?
    /// Whether the outcome of the push was counted.
    var hasOutcome = false
    /// The number of parts of the response body not yet sent.
    var remainingParts = 0
  }

  /// The index of the provider's connections to which this one belongs.
  let lane: Int
  /// The properties that rules can match.
  var traffic: Traffic.Connection
  var stateMachine: ConnectionStateMachine
  var authentication = ConnectionAuthentication()
  var streamLimit: StreamLimitPolicy
  var rejections = RejectionCounter()
  /// The injected response to every push until the connection is shut down.
  var responseUntilShutdown: Injection?
  /// The actions that the handler has not performed yet.
  var pendingActions: [(action: ConnectionAction, cause: String)] = []
  /// The open streams.
  var streams: [Int32: Stream] = [:]
  /// The highest stream that the provider has opened; -1 for none.
  var lastStream: Int32 = -1
  let openedAt: MonotonicTime
  var lastActivity: MonotonicTime
  /// What prevents responses on the connection, if it is being opened or silenced.
  var obstacle: String?
  /// Whether the provider has received SETTINGS.
  var isOpened = false
  /// Whether the provider opens further streams: it has received neither GOAWAY nor the end of the connection.
  var isUsed = true
  /// The number of the next evaluation of the rules at `connection`, which cancels earlier ones.
  var evaluation = 0

  init(
    _ traffic: Traffic.Connection, lane: Int, settings: APNSSettings, teamUpdates: TeamTokenUpdates,
    at now: MonotonicTime
  ) {
    self.lane = lane
    self.traffic = traffic
    stateMachine = ConnectionStateMachine(state: .handshaking)
    streamLimit = StreamLimitPolicy(hasFullLimit: false, settings: settings)
    authentication.teamUpdates = teamUpdates
    openedAt = now
    lastActivity = now
  }

  /// Returns the connection at `now`, with its age and its idle time.
  func traffic(at now: MonotonicTime) -> Traffic.Connection {
    var traffic = traffic
    traffic.age = now - openedAt
    traffic.idle = now - lastActivity
    return traffic
  }
}
