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
/// What is to be sent waits in a queue of bounded size: if the receiver is slower than pushes arrive, the oldest are dropped and
/// counted. They are sent one after the other. The receiver is not trusted: each address is checked when a
/// connection to it is opened, redirects are not followed, and of the response only the status is read.
package final class Webhook: Sendable {
  /// What became of the pushes and findings.
  struct Counts: Sendable {
    /// Those that were answered with a status of success.
    var delivered = 0
    /// Those that were given up after all attempts.
    var failed = 0
    /// Those that were dropped because the receiver was too slow or the server ended; also other events, if they were more than
    /// the server keeps.
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
  private let queue: (stream: AsyncStream<Event>, continuation: AsyncStream<Event>.Continuation)
  private let progress = NIOLockedValueBox(Progress())
  /// The findings that were sent, by the `seq` of their pushes: the newest that were sent.
  private let known = NIOLockedValueBox([Int: Set<Finding.Kind>]())
  private let nextSearch = NIOLockedValueBox(NIODeadline.uptimeNanoseconds(0))
  private let task = NIOLockedValueBox<Task<Void, Never>?>(nil)

  /// What became of the pushes and findings so far.
  var counts: Counts { progress.withLockedValue { $0.counts } }

  /// A push to send; with a finding, the finding on it.
  private struct Event: Sendable {
    let record: Record
    var finding: Finding?
  }

  private struct Progress {
    var counts = Counts()
    var throttle = LogThrottle()
    /// The number of pushes and findings that were given up since the first failure after a delivery; nil after a delivery.
    var failures: Int?
    /// Whether the present failures were logged.
    var isLogged = false
  }

  /// Starts to send pushes. Returns nil without a URL, or if the server has stopped.
  ///
  /// - Parameters:
  ///   - version: The program's version, for the header field `user-agent`.
  ///   - queueLimit: The maximum number of pushes and findings that wait. Each push has at most 5 KiB of payload.
  /// - Throws: `FilterError` if the query of the settings is invalid; `TLSError` that names an unusable file.
  package init?(
    _ settings: WebhookSettings, of state: ServerState, version: String, logger: Logger, queueLimit: Int = 8192
  ) throws {
    queue = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(queueLimit))
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
      async let reading: Void = read()
      for await event in queue.stream {
        await deliver(event)
      }
      await reading
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

  /// Adds pushes and findings to the queue until the server or the reader stops.
  private func read() async {
    let heartbeat = Task { [reader] in
      while true {
        try await Task.sleep(for: .nanoseconds(Self.searchInterval.nanoseconds))
        reader.signalHeartbeat()
      }
    }
    await reader.forEachEndedPush(
      missed: { count in progress.withLockedValue { $0.counts.dropped += count } }, caughtUp: addLaterFindings
    ) { record in
      if selection.contains(record) { add(Event(record: record)) }
      known.withLockedValue { known in
        known[record.seq] = []
        if known.count > 2 * Self.watchedPushes { known = known.filter { $0.key > record.seq - Self.watchedPushes } }
      }
      add(state.inbox.findings(on: record, by: state.rulebook), on: record)
    }
    heartbeat.cancel()
    queue.continuation.finish()
  }

  /// Adds findings on pushes that were added before these were known.
  private func addLaterFindings() {
    let isDue = nextSearch.withLockedValue { next in
      if .now() < next { return false }
      next = .now() + Self.searchInterval
      return true
    }
    guard isDue else { return }
    let seqs = known.withLockedValue { $0.keys.sorted().suffix(Self.watchedPushes) }
    guard let first = seqs.first, let last = seqs.last else { return }
    var selection = Selection.allKinds
    selection.after = max(first - 1, last - Self.watchedPushes)
    selection.before = last + 1
    // What a failing store cannot show is added later.
    let findings = (try? state.inbox.findings(by: state.rulebook, in: selection).findings) ?? []
    for finding in findings where known.withLockedValue({ $0[finding.seq]?.contains(finding.kind) }) == false {
      if let record = try? state.inbox.record(seq: finding.seq) { add([finding], on: record) }
    }
  }

  private func add(_ findings: [Finding], on record: Record) {
    for finding in findings {
      let isNew = known.withLockedValue { $0[record.seq]?.insert(finding.kind).inserted } == true
      if isNew, selection.contains(record) { add(Event(record: record, finding: finding)) }
    }
  }

  private func add(_ event: Event) {
    if case .dropped = queue.continuation.yield(event) { progress.withLockedValue { $0.counts.dropped += 1 } }
  }

  private func deliver(_ event: Event) async {
    // The stream still has what waited when the time was over.
    guard !Task.isCancelled else { return progress.withLockedValue { $0.counts.dropped += 1 } }
    let request = request(for: event)
    var problem = await problem(with: request)
    for delay in Self.retryDelays where problem?.isTemporary == true && !Task.isCancelled {
      logFirst(problem, of: event, isRetried: true)
      try? await Task.sleep(for: delay)
      if Task.isCancelled { break }
      progress.withLockedValue { $0.counts.retries += 1 }
      problem = await self.problem(with: request)
    }
    if problem == nil {
      let failures = progress.withLockedValue { progress in
        progress.counts.delivered += 1
        defer { progress.failures = nil }
        return progress.isLogged ? progress.failures : nil
      }
      if let failures {
        logger.notice(
          "webhook \(url.authority) receives again; pushes and findings that it has not received: \(failures)")
      }
    } else {
      logFirst(problem, of: event, isRetried: false)
      progress.withLockedValue { progress in
        progress.counts.failed += 1
        progress.failures = (progress.failures ?? 0) + 1
      }
    }
  }

  /// Logs the first problem after a delivery, at most once a minute.
  private func logFirst(_ problem: (text: String, isTemporary: Bool)?, of event: Event, isRetried: Bool) {
    guard let problem else { return }
    let isFirst = progress.withLockedValue { progress in
      guard progress.failures == nil else { return false }
      progress.failures = 0
      progress.isLogged = progress.throttle.shouldLog()
      return progress.isLogged
    }
    guard isFirst else { return }
    let subject = (event.finding.map { "\($0.kind.rawValue) on " } ?? "") + "push \(event.record.seq)"
    logger.warning(
      "webhook \(url.authority): \(subject) was not delivered: \(problem.text)\(isRetried ? "; it is sent again" : "")")
  }

  private func request(for event: Event) -> HTTP1Request {
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("event", event.finding == nil ? "push" : "finding")
      if let finding = event.finding {
        writer.objectMember("finding") { writer in
          writer.member("finding", finding.kind.rawValue)
          finding.writeProof(to: &writer)
        }
      }
      writer.name("push")
      members.write(event.record, to: &writer, rulebook: state.rulebook, in: state.inbox)
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
