public import APNSRules
public import Inbox
public import Logging
import NIOConcurrencyHelpers
import Synchronization

/// What all connections of a server and its admin side share.
public final class ServerState: Sendable {
  /// How far the server is.
  public enum Phase: Sendable {
    case starting, ready, stopping
  }

  /// What was asked for.
  public let configuration: Configuration
  /// The clock that tests move.
  public let clock: ServerClock
  /// The provider keys that are trusted.
  public let keys: Snapshot<KeyRing>
  /// The device tokens about which something is known.
  public let devices: Snapshot<DeviceTable>
  /// Every push that came in.
  public let inbox: Inbox
  /// What happens, for whoever follows it.
  public let events: EventLog
  /// The folder of certificates and keys.
  public let certificates: CertificateFolder
  /// The file that the inbox was read from, to be looked at and not to be changed; nil for a server of its own.
  public let viewedFile: String?
  /// Makes generated ids repeatable.
  public let seed: UInt64
  /// Which faults are in force.
  public let faults: FaultControl
  /// Connections that are open, and some that were.
  public let connections = Connections()
  /// How often the log was told of their clients.
  let complaints = Complaints()
  /// Certificates for faults of the TLS handshake.
  let badCertificates: BadCertificates
  /// When it started, in milliseconds since 1970 of the machine's own clock.
  public let startTime = ServerClock.machineNow
  /// Machine time of the start, monotonic nanoseconds.
  private let startedAt = MachineTime.nanoseconds

  private let phaseNow = NIOLockedValueBox(Phase.starting)
  private let bound = NIOLockedValueBox(Addresses())
  private let connectionsMade = Atomic<UInt64>(0)

  struct Addresses {
    var apns: [Endpoint] = []
    var admin: Endpoint?
  }

  init(configuration: Configuration, certificates: CertificateFolder, logger: Logger) {
    self.configuration = configuration
    self.certificates = certificates
    viewedFile = nil
    badCertificates = BadCertificates(folder: certificates, extraNames: configuration.certificateNames)
    let clock = ServerClock()
    self.clock = clock
    seed = configuration.seed ?? UInt64.random(in: 1...999_999)
    keys = Snapshot(KeyRing(version: 1, keys: certificates.providerKeys.map(TrustedKey.init)))
    devices = Snapshot(DeviceTable())
    inbox = Inbox(maxRecords: configuration.maxRecords, maxBytes: configuration.maxBytes, now: { clock.now })
    events = EventLog(inbox)
    faults = FaultControl(
      configuration: configuration, seed: seed, connections: connections, events: events, logger: logger)
  }

  /// An inbox to be looked at, with nothing around it: nobody can push.
  ///
  /// - Parameters:
  ///   - inbox: from an export.
  ///   - file: where the export is, as people call it.
  public init(viewing inbox: Inbox, of file: String, configuration: Configuration, logger: Logger) {
    self.configuration = configuration
    self.inbox = inbox
    viewedFile = file
    certificates = CertificateFolder(
      path: configuration.certificates, caPEM: "", caFingerprint: "", providerKeys: [], notices: [])
    badCertificates = BadCertificates(folder: certificates, extraNames: [])
    clock = ServerClock()
    seed = 0
    keys = Snapshot(KeyRing(version: 1, keys: []))
    devices = Snapshot(DeviceTable())
    events = EventLog(inbox)
    faults = FaultControl(
      configuration: configuration, seed: seed, connections: connections, events: events, logger: logger)
  }

  /// The rules and faults in force.
  var behaviour: Snapshot<Behaviour> { faults.behaviour }

  /// The rules of the APNs that is mimicked, with the numbers in force.
  public var rulebook: Rulebook { behaviour.load().rulebook }

  /// The names that filters can ask for; nil where an export is viewed, whose names can be those of any server.
  public var knownNames: KnownNames? {
    guard viewedFile == nil else { return nil }
    return KnownNames(faults: [{ [faults] in faults.usedNames }, { [faults] in faults.libraryNames }])
  }

  /// How far the server is.
  public var phase: Phase {
    get { phaseNow.withLockedValue { $0 } }
    set { phaseNow.withLockedValue { $0 = newValue } }
  }

  /// Where providers connect, with the real ports, once the server listens.
  public internal(set) var apnsAddresses: [Endpoint] {
    get { bound.withLockedValue { $0.apns } }
    set { bound.withLockedValue { $0.apns = newValue } }
  }

  /// Where the inbox is read, once that is known.
  public var adminAddress: Endpoint? {
    get { bound.withLockedValue { $0.admin } }
    set { bound.withLockedValue { $0.admin = newValue } }
  }

  /// Begins counting anew: for rules, and for the attempts of pushes.
  public func resetCounters() {
    inbox.attempts.removeAll()
    faults.resetCounters()
  }

  /// How long the server has been running.
  public var uptime: Duration { .nanoseconds(MachineTime.nanoseconds - startedAt) }

  /// The number of the next connection, from 1.
  func nextConnectionNumber() -> UInt64 {
    connectionsMade.add(1, ordering: .relaxed).newValue
  }
}
