package import APNSMockRules
package import APNSMockDevices
package import APNSMockFaultModel
package import APNSMockFaults
package import APNSMockInbox
import Logging
import NIOConcurrencyHelpers
import Synchronization

/// The state shared by all connections of a server and its admin API.
package final class ServerState: Sendable {
  /// The stages of a server's life.
  package enum Phase: Sendable {
    case starting, standby, ready, stopping
  }

  /// The configuration the server was started with.
  package let configuration: MockServer.Configuration
  /// The server clock, which tests can freeze and advance.
  package let clock: ServerClock
  /// The changes of provider tokens of each team, for the setting `token_update_scope`.
  let teamTokenUpdates = TeamTokenUpdates()
  /// The trusted provider keys.
  package let keys: PublishedValue<TrustedKeySet>
  /// The registered devices, their apps and tokens.
  package let devices: DeviceRegistry
  /// The known apps.
  package let apps: PublishedValue<AppTable>
  /// The apps that a reset restores.
  let initialApps = NIOLockedValueBox(AppTable())
  /// Hashes of the fixture files that the server was started with.
  let initialFixtures = NIOLockedValueBox("")
  /// The broadcast channels.
  package let channels: ChannelRegistry
  /// The delivery of accepted pushes to registered devices.
  package let deliveryControl: DeliveryControl
  /// All received pushes.
  package let inbox: Inbox
  /// The log of server events for the event streams of admin clients.
  package let events: EventLog
  /// The folder of certificates and provider keys.
  package let certificates: CertificateFolder
  /// The certificate chain of the TLS listeners.
  package let chain: ServerChain
  /// The seed of generated ids and fault draws; the same seed repeats them.
  package let seed: UInt64
  /// The active fault profile and rules.
  package let faults: FaultControl
  /// The open connections and the most recently closed ones.
  package let connections = Connections()
  /// The connections to upstream; nil if pushes are not forwarded.
  package let upstream: UpstreamPool?
  /// Limits how often client errors are logged.
  let clientErrorLog = ClientErrorLog()
  /// Certificates for faults of the TLS handshake, created on demand.
  let faultCertificates: FaultCertificates
  /// The start time by the machine's clock, in milliseconds since 1970.
  package let startTime = ServerClock.machineNow
  /// The start time in monotonic nanoseconds.
  private let startedAt = MachineTime.nanoseconds

  private let phaseNow = NIOLockedValueBox(Phase.starting)
  private let bound = NIOLockedValueBox((listeners: [BoundListener](), admin: MockServer.Endpoint?.none))
  private let connectionsMade: Synchronization.Atomic<UInt64>
  /// The source of generated device tokens.
  let deviceTokens: DeviceTokenSource

  init(configuration: MockServer.Configuration, certificates: CertificateFolder, chain: ServerChain, logger: Logger) {
    self.configuration = configuration
    self.certificates = certificates
    self.chain = chain
    faultCertificates = FaultCertificates(folder: certificates, extraNames: configuration.certificateNames)
    upstream = configuration.upstream.map { UpstreamPool($0) }
    let clock = ServerClock()
    self.clock = clock
    let contents = configuration.recordWriter?.store.initialContents
    seed = configuration.seed ?? contents?.seed ?? Self.randomSeed()
    keys = PublishedValue(TrustedKeySet(version: 1, keys: certificates.providerKeys.map(TrustedKey.init)))
    let deviceTokens = DeviceTokenSource(seed: seed, writer: configuration.recordWriter)
    self.deviceTokens = deviceTokens
    devices = DeviceRegistry(maxDevices: configuration.maxDevices) { deviceTokens.next(ofActivity: true) }
    apps = PublishedValue(AppTable())
    channels = ChannelRegistry { [seed] number in
      var source = IdentifierSource(seed: seed, channel: number)
      return source.base64()
    }
    inbox = Inbox(
      maxRecords: configuration.maxRecords, maxBytes: configuration.maxBytes, recording: configuration.recording,
      writer: configuration.recordWriter, knownTargets: NearTargets(devices: devices, keys: keys, apps: apps).known,
      now: { clock.now })
    // Names of connections are not used again, so that a query finds those of one connection.
    connectionsMade = .init(UInt64(clamping: contents?.lastConnection ?? 0))
    events = EventLog(inbox)
    deliveryControl = DeliveryControl(devices: devices, inbox: inbox, clock: clock)
    faults = FaultControl(
      configuration: configuration, seed: seed, connections: connections, events: events, logger: logger)
  }

  /// Returns a seed for a server that is started without one.
  package static func randomSeed() -> UInt64 { UInt64.random(in: 1...999_999) }

  /// The active APNs rules and faults.
  var activePolicy: PublishedValue<ActivePolicy> { faults.activePolicy }

  /// The APNs rules with the active settings, for the default environment. Findings do not depend on the environment.
  package var rulebook: Rulebook { activePolicy.load().rulebooks[configuration.environment] }

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

  /// The listeners for providers of any kind; empty before the server listens. Their indices are those in records,
  /// rules and the admin API: the APNs listeners, the cleartext listeners, the proxy, the listeners for channel
  /// management.
  package internal(set) var listeners: [BoundListener] {
    get { bound.withLockedValue { $0.listeners } }
    set { bound.withLockedValue { $0.listeners = newValue } }
  }

  /// The addresses of the APNs listeners with the ports actually bound; empty before the server listens.
  package var apnsAddresses: [MockServer.Endpoint] { listeners.filter(\.kind.isAPNs).map(\.endpoint) }

  /// The address of the admin API; nil before it is known.
  package var adminAddress: MockServer.Endpoint? {
    get { bound.withLockedValue { $0.admin } }
    set { bound.withLockedValue { $0.admin = newValue } }
  }

  /// Resets the counters of rules, the attempt numbers of pushes, and the changes of provider tokens that are counted
  /// by team.
  package func resetCounters() {
    inbox.attempts.removeAll()
    teamTokenUpdates.reset()
    faults.resetCounters()
  }

  /// The time since the server started.
  package var uptime: Duration { .nanoseconds(MachineTime.nanoseconds - startedAt) }

  /// Returns the number of the next connection, from 1.
  func nextConnectionNumber() -> UInt64 {
    let number = connectionsMade.add(1, ordering: .relaxed).newValue
    inbox.writer?.didOpen(connection: Int(clamping: number))
    return number
  }
}

extension ServerState {
  /// Returns how the active rules evaluate a recorded push. Rules that are no longer active are not included.
  package func evaluateRules(of record: Record) -> [RuleEvaluationReport] {
    activePolicy.load().plan.evaluate(record)
  }
}

extension FaultPlan {
  /// Returns how the rules evaluate a recorded push as it was received: first the rules of the injection point
  /// `request`, then those of `response`.
  package func evaluate(_ record: Record) -> [RuleEvaluationReport] {
    guard let verdict = record.verdict else { return [] }
    let facts = record.connection
    let connection = Traffic.Connection(
      number: UInt64(facts.id.dropFirst()) ?? 0, client: MockServer.Endpoint(facts.client)?.host ?? facts.client,
      listener: facts.listener, environment: facts.environment, serverName: facts.sni,
      certificateUID: facts.certificate?.subjectUID,
      // Clients use odd stream ids, from 1 (RFC 9113 section 5.1.1).
      streamsOpened: Int(record.stream) / 2 + 1)
    var traffic = Traffic(
      connection: connection,
      push: Traffic.Push(
        request: record.request, verdict: verdict, key: record.pushKey,
        defaultTopic: facts.defaultTopic(verdict.facts), attempt: Int(record.attempt), receivedAt: record.receivedAt))
    let request = evaluateWithoutCounting(traffic, at: .request, now: record.arrivedAt)
    traffic.response = Traffic.Response(
      status: record.sentResponse.status.map(Int.init) ?? verdict.status,
      reason: record.sentReason ?? verdict.reason?.text)
    return request + evaluateWithoutCounting(traffic, at: .response, now: record.arrivedAt)
  }
}

extension ServerState {
  /// Verifies the expectations against the inbox.
  ///
  /// - Returns: The report; nil if the server stops, or the task is cancelled, before the result is known.
  /// - Throws: `StoreUnavailable` if the store of the inbox cannot be read.
  package func verify(_ verification: Verification) async throws -> VerificationReport? {
    let selection = faults.selection
    return try await inbox.verify(
      verification,
      in: VerificationContext(rulebook: rulebook, seed: selection.seed, profile: selection.selectedProfile.reference))
  }
}
