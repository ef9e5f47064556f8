package import APNSMockRules
package import APNSMockFaultModel
internal import APNSMockFaults
package import APNSMockInbox
package import MockAPNS
internal import NIOConcurrencyHelpers
internal import APNSMockNotation

/// The pushes that the reading routes serve: those of a running server, or an imported inbox.
package protocol InboxSource: AnyObject, Sendable {
  var inbox: Inbox { get }
  /// The log of events for the event streams of admin clients.
  var events: EventLog { get }
  /// The APNs rules that determine findings.
  var rulebook: Rulebook { get }
  /// Whether further pushes can arrive, so that waiting for them is useful.
  var receivesPushes: Bool { get }
  /// The address of the admin listener; nil before it is known.
  var adminAddress: MockServer.Endpoint? { get set }

  /// Returns the context that filters are evaluated in; see `ServerState.filterContext(_:)`.
  func filterContext(_ snapshot: InboxSnapshot?) -> FilterContext
  /// Verifies expectations; nil if the server stops, or the task is cancelled, before the result is known.
  func verify(_ verification: Verification) async throws -> VerificationReport?
  /// Returns how the active rules evaluate a recorded push.
  func evaluateRules(of record: Record) -> [RuleEvaluationReport]
  /// Returns the port of an APNs listener, nil if it is unknown, and the path of the CA certificate, for commands that
  /// repeat a push.
  func target(ofListener listener: Int) -> (port: Int?, caPath: String)
}

extension ServerState: InboxSource {
  package var receivesPushes: Bool { true }

  package func target(ofListener listener: Int) -> (port: Int?, caPath: String) {
    let addresses = apnsAddresses
    let address =
      addresses.indices.contains(listener) ? addresses[listener] : addresses.first ?? configuration.apns.first
    return (address?.port, certificates.caPath)
  }
}

/// An imported inbox, or one that servers write, which an `AdminServer` serves read-only.
package final class InboxViewer: InboxSource {
  package let inbox: Inbox
  /// The name of the export or the store, for display.
  package let file: String
  /// The bearer token that the admin API requires; nil for none.
  package let adminToken: String?
  package let events: EventLog
  package let rulebook = Rulebook(mode: .apple, environment: .sandbox, settings: APNSSettings())
  /// The servers whose schemas are read, and what is wrong with others; nil for an export.
  package struct Sources: Sendable {
    let names: @Sendable () -> [String]
    let problems: @Sendable () -> [String]
    /// Why none can be read now; nil if they can.
    let failure: @Sendable () -> String?

    /// Creates a description, whose values are read when they are needed.
    package init(
      names: @escaping @Sendable () -> [String], problems: @escaping @Sendable () -> [String],
      failure: @escaping @Sendable () -> String?
    ) {
      (self.names, self.problems, self.failure) = (names, problems, failure)
    }
  }

  let sources: Sources?
  package var receivesPushes: Bool { sources != nil }
  /// The rules that apply to every server: those of magic device tokens.
  private let plan = FaultPlan(
    profile: Profile(name: "healthy"), addedRules: [], seed: 0, magicTokens: true, isPaused: false, activatedAt: 0,
    addedRulesActivatedAt: [:], ruleCounters: RuleCounters())
  private let startedAt = MachineTime.nanoseconds
  private let clock = ServerClock()
  private let boundAddress = NIOLockedValueBox<MockServer.Endpoint?>(nil)

  /// Creates a viewer.
  package init(_ inbox: Inbox, of file: String, sources: Sources? = nil, adminToken: String?) {
    self.inbox = inbox
    self.sources = sources
    self.file = file
    self.adminToken = adminToken
    events = EventLog(inbox)
  }

  package var adminAddress: MockServer.Endpoint? {
    get { boundAddress.withLockedValue { $0 } }
    set { boundAddress.withLockedValue { $0 = newValue } }
  }

  /// Returns a context that accepts any profile and rule name: an export may contain those of any server.
  package func filterContext(_ snapshot: InboxSnapshot?) -> FilterContext {
    FilterContext(now: clock.now, rulebook: rulebook, snapshot: snapshot, inbox: inbox)
  }

  package func verify(_ verification: Verification) async throws -> VerificationReport? {
    try await inbox.verify(verification, in: VerificationContext(rulebook: rulebook, seed: nil, profile: nil))
  }

  package func evaluateRules(of record: Record) -> [RuleEvaluationReport] { plan.evaluate(record) }

  package func target(ofListener listener: Int) -> (port: Int?, caPath: String) {
    // An export does not contain the server's address; use the defaults of `serve`.
    (MockServer.Configuration().apns.first?.port, MockServer.Configuration().certificates + "/ca.pem")
  }

  /// Returns the text that `/` responds with to clients other than browsers.
  func welcome(version: String) -> String {
    """
    apns-mock \(version), a read-only view of \(file)

      /api/v1/pushes              all pushes, with the reason for each response
      /api/v1/pushes?status=400
      /api/v1/status

    """
  }

  /// Returns the route of the status: as a server's, with null for values that an export does not contain.
  func statusRoute(version: String) -> Route {
    .get("/status") { [self] _, _ in
      .json { writer in
        writer.member("version", version)
        writer.member("phase", ServerState.Phase.ready.name)
        writer.member("view", file)
        writer.member("uptime_ms", (MachineTime.nanoseconds - startedAt) / 1_000_000)
        for name in ["seed", "environment", "rules", "profile"] { writer.nullMember(name) }
        writer.objectMember("addresses") { writer in
          writer.arrayMember("apns") { _ in }
          writer.member("admin", adminAddress)
        }
        writer.objectMember("inbox") { inbox.snapshot().write(to: &$0, of: inbox) }
        if let sources { writer.member("servers", sources.names()) }
        writer.member("warnings", sources?.problems() ?? [])
      }
    }
  }
}
