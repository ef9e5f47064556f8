package import APNSRules
package import FaultModel
package import Faults
package import Inbox
import Logging
import NIOConcurrencyHelpers
import Synchronization

/// The state shared by all connections of a server and its admin API.
package final class ServerState: Sendable {
  /// The stages of a server's life.
  package enum Phase: Sendable {
    case starting, ready, stopping
  }

  /// The configuration the server was started with.
  package let configuration: Configuration
  /// The server clock, which tests can freeze and advance.
  package let clock: ServerClock
  /// The trusted provider keys.
  package let keys: Snapshot<TrustedKeySet>
  /// The device tokens with a registered status.
  package let devices: Snapshot<DeviceTable>
  /// All received pushes.
  package let inbox: Inbox
  /// The log of server events for the event streams of admin clients.
  package let events: EventLog
  /// The folder of certificates and provider keys.
  package let certificates: CertificateFolder
  /// The seed of generated ids and fault draws; the same seed repeats them.
  package let seed: UInt64
  /// The active fault profile and rules.
  package let faults: FaultControl
  /// The open connections and the most recently closed ones.
  package let connections = Connections()
  /// Limits how often client errors are logged.
  let clientErrorLog = ClientErrorLog()
  /// Certificates for faults of the TLS handshake, created on demand.
  let faultCertificates: FaultCertificates
  /// The start time by the machine's clock, in milliseconds since 1970.
  package let startTime = ServerClock.machineNow
  /// The start time in monotonic nanoseconds.
  private let startedAt = MachineTime.nanoseconds

  private let phaseNow = NIOLockedValueBox(Phase.starting)
  private let bound = NIOLockedValueBox(Addresses())
  private let connectionsMade = Atomic<UInt64>(0)

  struct Addresses {
    var apns: [Endpoint] = []
    var apnsPlain: [Endpoint] = []
    var proxy: Endpoint?
    var admin: Endpoint?
  }

  init(configuration: Configuration, certificates: CertificateFolder, logger: Logger) {
    self.configuration = configuration
    self.certificates = certificates
    faultCertificates = FaultCertificates(folder: certificates, extraNames: configuration.certificateNames)
    let clock = ServerClock()
    self.clock = clock
    seed = configuration.seed ?? UInt64.random(in: 1...999_999)
    keys = Snapshot(TrustedKeySet(version: 1, keys: certificates.providerKeys.map(TrustedKey.init)))
    devices = Snapshot(DeviceTable())
    inbox = Inbox(maxRecords: configuration.maxRecords, maxBytes: configuration.maxBytes, now: { clock.now })
    events = EventLog(inbox)
    faults = FaultControl(
      configuration: configuration, seed: seed, connections: connections, events: events, logger: logger)
  }

  /// The active APNs rules and faults.
  var activePolicy: Snapshot<ActivePolicy> { faults.activePolicy }

  /// The APNs rules that requests are validated by, with the active settings.
  package var rulebook: Rulebook { activePolicy.load().rulebook }

  /// The profile and rule names that filters may refer to.
  package var knownNames: KnownNames {
    KnownNames(faults: [{ [faults] in faults.usedNames }, { [faults] in faults.libraryNames }])
  }

  /// Returns the context that filters are evaluated in.
  ///
  /// - Parameter snapshot: The pushes in which `is:duplicate` looks for duplicates; nil for a filter on future
  ///   pushes.
  package func filterContext(_ snapshot: InboxSnapshot?) -> FilterContext {
    FilterContext(now: clock.now, rulebook: rulebook, snapshot: snapshot, inbox: inbox, known: knownNames)
  }

  /// The server's current stage.
  package var phase: Phase {
    get { phaseNow.withLockedValue { $0 } }
    set { phaseNow.withLockedValue { $0 = newValue } }
  }

  /// The addresses of the APNs listeners with the ports actually bound; empty before the server listens.
  package internal(set) var apnsAddresses: [Endpoint] {
    get { bound.withLockedValue { $0.apns } }
    set { bound.withLockedValue { $0.apns = newValue } }
  }

  /// The addresses of the cleartext listeners with the ports actually bound; empty before the server listens.
  package internal(set) var apnsPlainAddresses: [Endpoint] {
    get { bound.withLockedValue { $0.apnsPlain } }
    set { bound.withLockedValue { $0.apnsPlain = newValue } }
  }

  /// The address of the CONNECT proxy; nil without one, and before the server listens.
  package internal(set) var proxyAddress: Endpoint? {
    get { bound.withLockedValue { $0.proxy } }
    set { bound.withLockedValue { $0.proxy = newValue } }
  }

  /// The number of listeners for providers of any kind. Their indices in records, rules and the admin API are those of
  /// the APNs listeners, followed by the cleartext listeners and the proxy.
  package var listenerCount: Int {
    bound.withLockedValue { $0.apns.count + $0.apnsPlain.count + ($0.proxy == nil ? 0 : 1) }
  }

  /// The address of the admin API; nil before it is known.
  package var adminAddress: Endpoint? {
    get { bound.withLockedValue { $0.admin } }
    set { bound.withLockedValue { $0.admin = newValue } }
  }

  /// Resets the counters of rules and the attempt numbers of pushes.
  package func resetCounters() {
    inbox.attempts.removeAll()
    faults.resetCounters()
  }

  /// The time since the server started.
  package var uptime: Duration { .nanoseconds(MachineTime.nanoseconds - startedAt) }

  /// Returns the number of the next connection, from 1.
  func nextConnectionNumber() -> UInt64 {
    connectionsMade.add(1, ordering: .relaxed).newValue
  }
}

extension ServerState {
  /// Returns how the active rules evaluate a recorded push. Rules that are no longer active are not included.
  package func evaluateRules(of record: Record) -> [RuleEvaluationResult] {
    activePolicy.load().plan.evaluate(record)
  }
}

extension FaultPlan {
  /// Returns how the rules evaluate a recorded push as it was received: first the rules of the injection point
  /// `request`, then those of `response`.
  package func evaluate(_ record: Record) -> [RuleEvaluationResult] {
    guard let verdict = record.verdict else { return [] }
    let facts = record.connection
    let connection = Traffic.Connection(
      number: UInt64(facts.id.dropFirst()) ?? 0, client: Endpoint(facts.client)?.host ?? facts.client,
      listener: facts.listener, environment: facts.environment, serverName: facts.sni,
      certificateUID: facts.certificate?.subjectUID,
      // Clients use odd stream ids, from 1 (RFC 9113 section 5.1.1).
      streamsOpened: Int(record.stream) / 2 + 1)
    var traffic = Traffic(
      connection: connection,
      push: Traffic.Push(
        request: record.request, verdict: verdict, key: record.pushKey,
        defaultTopic: facts.defaultTopic(verdict.facts), attempt: Int(record.attempt), now: record.receivedAt))
    let request = evaluateWithoutCounting(traffic, at: .request, now: record.arrivedAt)
    traffic.response = Traffic.Response(
      status: record.served.status.map(Int.init) ?? verdict.status, reason: record.servedReason ?? verdict.reason?.text)
    return request + evaluateWithoutCounting(traffic, at: .response, now: record.arrivedAt)
  }
}

extension ServerState {
  /// Verifies the expectations against the inbox.
  ///
  /// - Returns: The report; nil if the server stops, or the task is cancelled, before the result is known.
  package func verify(_ verification: Verification) async -> VerificationReport? {
    let selection = faults.selection
    return await inbox.verify(
      verification,
      in: VerificationContext(rulebook: rulebook, seed: selection.seed, profile: selection.chosen.reference))
  }
}
