internal import APNSMockFaultModel
internal import APNSMockInbox
internal import APNSMockNotation
package import Logging
package import MockAPNS
internal import NIOConcurrencyHelpers
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import APNSMockTLSEngine

/// Sends each push to a URL of the user as a `POST` with JSON, once the attempt has ended, and each finding once it is known.
///
/// The pushes wait in the event log of the server, whose size is bounded: a receiver that is slower than the pushes arrive loses
/// some, which are counted. They are sent one after the other. The receiver is not trusted: each address is checked when a
/// connection to it is opened, redirects are not followed, and of the response only the status is read.
package final class Webhook: Sendable {
  /// What became of the pushes and findings.
  struct Counts: Sendable {
    /// Those that were answered with a status of success.
    var delivered = 0
    /// Those that were given up after all attempts.
    var failed = 0
    /// Those, and other events, that were dropped because the receiver was too slow.
    var dropped = 0
    /// The attempts that repeated an earlier one.
    var retries = 0
  }

  /// The time limit for a connection, and again for a response.
  private static let timeout = TimeAmount.seconds(5)
  /// The delays before the second and each further attempt.
  private static let retryDelays: [Duration] = [.milliseconds(500), .seconds(2), .seconds(8)]
  /// How long `finish` waits for what is left.
  private static let finalTime = Duration.seconds(1)
  /// The time between searches for findings that no push causes, such as one that follows from the end of a connection.
  private static let searchInterval = TimeAmount.seconds(1)
  /// The number of the newest pushes on which findings are searched for.
  static let watchedPushes = 1000
  /// Loopback addresses and the private ones of RFC 1918 and RFC 4193. Link-local addresses are not among them: clouds serve
  /// credentials of the machine on 169.254.169.254.
  private static let localBlocks = [
    "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1", "fc00::/7",
  ].compactMap { try? AddressBlock($0) }
  /// The addresses among those of RFC 4193 on which Amazon EC2 and Google Cloud serve the same over IPv6.
  private static let metadataBlocks = ["fd00:ec2::254", "fd20:ce::254"].compactMap { try? AddressBlock($0) }
  private static let members = """
    seq,run,test,kind,outcome,decision,ending,delivery,environment,received_at,attempt,push_key,connection.id,\
    request.device_token,request.size,apns,auth.kind,auth.team_id,auth.key_id,fault,served,findings
    """

  private let url: WebhookURL
  private let tls: TLSContext?
  private let allowsAnyAddress: Bool
  private let selection: Selection
  private let members: RecordMembers
  private let state: ServerState
  private let version: String
  private let logger: Logger
  private let reader: EventReader
  private let counted = NIOLockedValueBox((counts: Counts(), throttle: LogThrottle()))
  /// The findings that were sent, by the `seq` of their pushes: the newest that were sent.
  private let known = NIOLockedValueBox([Int: Set<Finding.Kind>]())
  private let nextSearch = NIOLockedValueBox(NIODeadline.uptimeNanoseconds(0))
  private let task = NIOLockedValueBox<Task<Void, Never>?>(nil)

  /// What became of the pushes and findings so far.
  var counts: Counts { counted.withLockedValue { $0.counts } }

  /// Starts to send pushes. Returns nil without a URL, or if the server has stopped.
  ///
  /// - Parameter version: The program's version, for the header field `user-agent`.
  /// - Throws: `FilterError` if the query of the settings is invalid; `TLSError` that names an unusable file.
  package init?(_ settings: WebhookSettings, of state: ServerState, version: String, logger: Logger) throws {
    var members = RecordMembers()
    try members.add(Self.members + (settings.includesPayload ? ",request.payload" : ""))
    selection = try Selection([(name: "q", value: settings.filter)], in: state.filterContext(nil))
    tls = try settings.tlsContext()
    guard let url = settings.url, let reader = state.events.addReader() else { return nil }
    (self.url, self.members, self.state, self.version, self.logger) = (url, members, state, version, logger)
    self.reader = reader
    allowsAnyAddress = settings.allowsAnyAddress
    // Findings may read the store, for which no thread of Swift's concurrency may wait.
    let executor = SerialTaskExecutor("apns-mock.webhook")
    let running = Task(executorPreference: executor) { [self] in
      let heartbeat = Task {
        while true {
          try await Task.sleep(for: .nanoseconds(Self.searchInterval.nanoseconds))
          reader.signalHeartbeat()
        }
      }
      await reader.forEachEndedPush(
        missed: { count in counted.withLockedValue { $0.counts.dropped += count } }, caughtUp: deliverLaterFindings
      ) { record in
        if selection.contains(record) { await deliver(record) }
        known.withLockedValue { known in
          known[record.seq] = []
          if known.count > 2 * Self.watchedPushes { known = known.filter { $0.key > record.seq - Self.watchedPushes } }
        }
        await deliver(state.inbox.findings(on: record, by: state.rulebook), on: record)
      }
      heartbeat.cancel()
    }
    task.withLockedValue { $0 = running }
  }

  /// Sends what is left, for a second at most, and ends.
  package func finish() async {
    guard let running = task.withLockedValue({ $0 }) else { return }
    let limit = Task {
      try await Task.sleep(for: Self.finalTime)
      running.cancel()
    }
    nextSearch.withLockedValue { $0 = .now() }
    await reader.finish()
    await running.value
    limit.cancel()
    if running.isCancelled { logger.warning("webhook \(url.authority): the server ended before everything was sent") }
  }

  /// Sends findings on pushes that were sent before these were known.
  private func deliverLaterFindings() async {
    let isDue = nextSearch.withLockedValue { next in
      if .now() < next { return false }
      next = .now() + Self.searchInterval
      return true
    }
    let seqs = known.withLockedValue { $0.keys.sorted().suffix(Self.watchedPushes) }
    guard isDue, let first = seqs.first, let last = seqs.last, !Task.isCancelled else { return }
    var selection = Selection.allKinds
    selection.after = max(first - 1, last - Self.watchedPushes)
    selection.before = last + 1
    // What a failing store cannot show is sent later.
    let findings = (try? state.inbox.findings(by: state.rulebook, in: selection).findings) ?? []
    for finding in findings where known.withLockedValue({ $0[finding.seq]?.contains(finding.kind) }) == false {
      if let record = try? state.inbox.record(seq: finding.seq) { await deliver([finding], on: record) }
    }
  }

  private func deliver(_ findings: [Finding], on record: Record) async {
    for finding in findings {
      let isNew = known.withLockedValue { $0[record.seq]?.insert(finding.kind).inserted } == true
      if isNew, selection.contains(record) { await deliver(record, finding) }
    }
  }

  private func deliver(_ record: Record, _ finding: Finding? = nil) async {
    if Task.isCancelled { return counted.withLockedValue { $0.counts.dropped += 1 } }
    let request = request(for: record, finding)
    var problem = await problem(with: request)
    for delay in Self.retryDelays where problem?.isTemporary == true && !Task.isCancelled {
      try? await Task.sleep(for: delay)
      if Task.isCancelled { break }
      counted.withLockedValue { $0.counts.retries += 1 }
      problem = await self.problem(with: request)
    }
    let isLogged = counted.withLockedValue { counted in
      guard problem != nil else {
        counted.counts.delivered += 1
        return false
      }
      counted.counts.failed += 1
      return counted.throttle.shouldLog()
    }
    if isLogged, let problem {
      let subject = (finding.map { "\($0.kind.rawValue) on " } ?? "") + "push \(record.seq)"
      logger.warning(
        "webhook \(url.authority): \(subject) was not delivered: \(problem.text) (logged once a minute)")
    }
  }

  private func request(for record: Record, _ finding: Finding?) -> HTTP1Request {
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("event", finding == nil ? "push" : "finding")
      if let finding {
        writer.objectMember("finding") { writer in
          writer.member("finding", finding.kind.rawValue)
          finding.writeProof(to: &writer)
        }
      }
      writer.name("push")
      members.write(record, to: &writer, rulebook: state.rulebook, in: state.inbox)
    }
    let head = HTTPRequestHead(
      version: .http1_1, method: .POST, uri: url.path,
      headers: ["host": url.authority, "user-agent": "apns-mock/\(version)", "connection": "close"])
    var request = HTTP1Request(
      head, body: writer.bytes, type: "application/json", to: url.endpoint, timeout: Self.timeout)
    request.bodyLimit = 0
    request.tls = tls
    request.isAllowed = { [allowsAnyAddress] address in allowsAnyAddress || Self.isLocal(address.ipAddress ?? "") }
    return request
  }

  /// Sends a request and returns why the push counts as not delivered; nil if it is delivered. A redirect is not followed.
  private func problem(with request: HTTP1Request) async -> (text: String, isTemporary: Bool)? {
    do {
      let status = try await request.send().status
      if (200..<300).contains(status) { return nil }
      return ("the receiver responded with \(status)", status >= 500 || status == 429 || status == 408)
    } catch let error as NIOConnectionError {
      let causes = error.connectionErrors.map { ($0.error as? IOError)?.reason ?? "\($0.error)" }
      let isForbidden = error.connectionErrors.contains { ($0.error as? HTTP1Request.Failure)?.isForbidden == true }
      let hint = isForbidden ? "; --webhook-anywhere allows other addresses than loopback and private ones" : ""
      return ((causes.isEmpty ? "the host is unknown" : causes.listed(3)) + hint, !isForbidden)
    } catch HTTP1Request.Failure.certificateNotTrusted(let problem, let kind) {
      let repair =
        switch kind {
        case .unknownAuthority: "; name its CA with --webhook-ca FILE"
        case .otherName: "; use a name that the certificate contains"
        case .expired, .notYetValid, .nameOutsideAuthority, .other: ""
        }
      return ("the certificate is not trusted: \(problem)\(repair)", false)
    } catch is CancellationError {
      return ("the server ended", false)
    } catch {
      return ("\(error)", true)
    }
  }

  /// Returns whether an IP address belongs to this machine or to a private network.
  static func isLocal(_ address: String) -> Bool {
    guard let address = IPAddress(address) else { return false }
    return localBlocks.contains { $0.contains(address) } && !metadataBlocks.contains { $0.contains(address) }
  }
}

extension HTTP1Request.Failure {
  /// Whether the address is not one that may be connected to.
  fileprivate var isForbidden: Bool { if case .addressNotAllowed = self { true } else { false } }
}
