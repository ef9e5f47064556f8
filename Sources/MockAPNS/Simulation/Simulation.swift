package import APNSMockFaultModel

/// A simulation of a profile without a network and on a simulated clock, which shows what its probabilities, counts and
/// times amount to.
///
/// The connections are those of the server without its sockets: the same checks, rules, connection state machine, stream
/// limits and fault actions. So a provider that does the following gets the same numbers from a server with the same
/// seed, if the server starts the profile when the first push is sent:
///
/// - Push `n`, from 0, is sent `n / rate` seconds after the first one on connection `n % connections`, to device token
///   `n / connections % devices`, as 64 hexadecimal digits; number 0 is `devices`. Its payload ends with
///   `"number":n`, so that all pushes are different.
/// - A connection is opened for the first push that needs it, and again for the next one after it ended. Pushes wait
///   for SETTINGS and, one behind the other, for the stream limit. If a connection ends without a stream, the push for
///   which it was opened is lost.
/// - After GOAWAY the provider opens no stream on the connection and closes it when its last stream has ended.
/// - Nothing is sent again. After `ExpiredProviderToken`, the provider creates a new provider token and continues on a
///   new connection.
///
/// Flow-control windows, PING and the time on the network are not simulated.
package struct Simulation: Sendable {
  /// The pushes to send.
  package struct Load: Sendable {
    /// The number of pushes; a negative number means 0.
    package var pushes = 10_000
    /// The number of device tokens, at least 1.
    package var devices = 1000
    /// The number of connections, at least 1.
    package var connections = 10
    /// Pushes per second, above 0.
    package var rate = 100.0
    /// `apns-topic`.
    package var topic = "com.example.app"
    /// `apns-push-type`.
    package var pushType = "alert"
    /// `apns-priority`.
    package var priority = "10"
    /// Members of the payload, to which a number is added that makes each push different: `"aps":{"alert":"Hello"}`.
    package var payloadMembers = #""aps":{"alert":"Hello"}"#

    /// Creates traffic of ten thousand alerts to a thousand devices in a hundred seconds.
    package init() {}
  }

  private let profile: Profile
  private let seed: UInt64
  private let load: Load

  /// Creates a simulation.
  package init(profile: Profile, seed: UInt64, load: Load = Load()) {
    self.profile = profile
    self.seed = seed
    self.load = load
  }

  /// Sends all pushes and waits, on the simulated clock, until the last one has an outcome. The same seed, profile and
  /// load give the same result.
  package func run() -> SimulationResult {
    var run = SimulationRun(profile: profile, seed: seed, load: load)
    return run.result()
  }
}
