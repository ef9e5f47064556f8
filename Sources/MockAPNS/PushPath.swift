import APNSRules
import HTTP2Session
import HTTPMessage
import Inbox

/// The way of a push through the server, from the request to its answer: judged by the rules of APNs, recorded,
/// answered. One for each connection, used on its event loop only.
struct PushPath {
  /// The provider made more mistakes than the settings allow: the connection should end.
  private(set) var hasTooManyErrors = false

  private let state: ServerState
  private let connection: ConnectionFacts
  private var keys: SnapshotReader<KeyRing>
  private var devices: SnapshotReader<DeviceTable>
  private var standing: ConnectionStanding
  private var answers: AnswerTemplates
  private var ids: IdentifierSource
  /// Read for each push, so not looked up in the configuration each time.
  private let throttlesOnErrors: Bool
  /// Whether the full number of streams is announced.
  private var isWidened: Bool
  private var rejections = 0
  private var now: Int64 = 0
  private var batchBegan: Int64 = 0
  private var batch: [Record] = []

  init(state: ServerState, connection number: UInt64, facts: ConnectionFacts, certificate: ProviderCertificate?) {
    self.state = state
    connection = facts
    keys = SnapshotReader(state.keys)
    devices = SnapshotReader(state.devices)
    standing = ConnectionStanding(certificate: certificate)
    answers = AnswerTemplates(environment: state.configuration.environment, settings: state.configuration.settings)
    ids = IdentifierSource(seed: state.seed, connection: number)
    throttlesOnErrors = state.configuration.settings.throttleOn4xx
    isWidened = certificate != nil
  }

  /// Reads the clocks, once for all requests of one read.
  mutating func beginBatch() {
    now = state.clock.now
    batchBegan = MachineTime.nanoseconds
  }

  /// Judges a request, submits its answer and keeps a record for `commit`.
  mutating func take(_ stream: RequestStream, session: HTTP2ServerSession) {
    var verdict = state.rulebook.judge(
      stream.request, standing: &standing, keys: keys.current(), devices: devices.current(), now: now)
    if verdict.isAccepted, let rate = state.deviceRate { limit(&verdict, of: stream.request, to: rate) }
    announceStreams(after: verdict, session)
    if verdict.isAccepted {
      accept(stream, verdict, session)
    } else {
      reject(stream, verdict, session)
    }
  }

  /// Makes the records of this read visible. To be called before the answers leave: a push that was answered is readable.
  mutating func commit() {
    guard !batch.isEmpty else { return }
    state.inbox.append(&batch)
  }

  /// Keeps a record of a request that was not whole when its stream ended: the client went away, or the server reset the
  /// stream because the request is not valid HTTP/2.
  mutating func recordUnfinished(_ stream: RequestStream, reset: HTTP2ErrorCode? = nil) {
    beginBatch()
    batch.append(
      Record(
        request: stream.request, verdict: nil, facts: PushFacts(stream.request.headers),
        generatedID: UnsafeRawBufferPointer(start: nil, count: 0), connection: connection,
        outcome: reset == nil ? .aborted : .rejected, accepted: false, served: Record.Served(reset: reset?.name),
        receivedAt: now, finishedAt: now))
  }

  // MARK: - Answers

  private mutating func accept(_ stream: RequestStream, _ verdict: Verdict, _ session: HTTP2ServerSession) {
    Self.fillIdentifiers(of: &answers.accepted, from: &ids, for: stream.request, verdict.facts)
    session.respond(to: stream, headers: answers.accepted.headers)
    record(stream.request, verdict, answer: answers.accepted, outcome: .accepted)
  }

  private mutating func reject(_ stream: RequestStream, _ verdict: Verdict, _ session: HTTP2ServerSession) {
    guard let reason = verdict.reason else {
      session.respond(to: stream, headers: answers.headersTooLarge)
      record(stream.request, verdict, answer: nil, outcome: .rejected)
      return
    }
    var answer = answers.rejected(status: verdict.status)
    Self.fillIdentifiers(of: &answer, from: &ids, for: stream.request, verdict.facts)
    session.respond(
      to: stream, headers: answer.headers, body: AnswerTemplates.body(reason: reason, timestamp: verdict.timestamp))
    record(stream.request, verdict, answer: answer, outcome: .rejected)
    // 410 tells of the device, not of the provider, and never counts (APNS.md section 7.2, documented).
    if verdict.status != 410 { rejections += 1 }
    if let limit = state.configuration.settings.errorsBeforeGoaway, rejections >= limit {
      hasTooManyErrors = true
    }
  }

  /// Echoes the client's `apns-id` byte for byte if it is a UUID, else makes one (APNS.md section 7.3).
  private static func fillIdentifiers(
    of answer: inout AnswerTemplates.Template, from ids: inout IdentifierSource, for request: HTTPRequest,
    _ facts: PushFacts
  ) {
    if let given = facts.apnsID, facts.apnsIDIsUUID {
      request.headers.bytes.withUnsafeBufferPointer { bytes in
        answer.headers.withMutableValue(answer.apnsID) {
          _ = $0.update(fromContentsOf: UnsafeBufferPointer(rebasing: bytes[given.indices]))
        }
      }
    } else {
      answer.headers.withMutableValue(answer.apnsID) { ids.write(.upperCase, over: $0) }
    }
    if let uniqueID = answer.uniqueID {
      answer.headers.withMutableValue(uniqueID) { ids.write(.lowerCase, over: $0) }
    }
  }

  private mutating func record(
    _ request: HTTPRequest, _ verdict: Verdict, answer: AnswerTemplates.Template?, outcome: Record.Outcome
  ) {
    let served = Record.Served(
      status: verdict.status, reason: verdict.reason,
      latencyNanoseconds: MachineTime.nanoseconds - batchBegan)
    let isGenerated = verdict.facts.apnsID == nil || !verdict.facts.apnsIDIsUUID
    let generated = isGenerated ? answer : nil
    let made = (generated?.headers ?? HeaderList()).bytes.withUnsafeBytes { bytes in
      Record(
        request: request, verdict: verdict, facts: verdict.facts,
        generatedID: UnsafeRawBufferPointer(rebasing: bytes[generated?.apnsID.indices ?? 0..<0]),
        connection: connection, outcome: outcome, accepted: verdict.isAccepted, served: served, receivedAt: now,
        finishedAt: now)
    }
    batch.append(made)
  }

  // MARK: - Limits

  /// One stream until the first valid provider token, then the full number, in SETTINGS that leave before the answer; and,
  /// if so configured, one stream again after a rejection (APNS.md section 9.1, observed).
  private mutating func announceStreams(after verdict: Verdict, _ session: HTTP2ServerSession) {
    if isWidened, !throttlesOnErrors { return }
    if !isWidened {
      guard standing.providerTokenAccepted || standing.certificate != nil else { return }
      if throttlesOnErrors, !verdict.isAccepted { return }
      isWidened = true
      session.announce(maxConcurrentStreams: UInt32(clamping: state.configuration.settings.maxStreams))
    } else if (400..<500).contains(verdict.status), verdict.status != 410 {
      isWidened = false
      session.announce(maxConcurrentStreams: 1)
    }
  }

  private func limit(_ verdict: inout Verdict, of request: HTTPRequest, to rate: SharedDeviceRate) {
    guard let token = verdict.facts.deviceToken else { return }
    let admitted = request.headers.bytes.withUnsafeBytes { bytes in
      rate.admit(UnsafeRawBufferPointer(rebasing: bytes[token.indices]))
    }
    if !admitted { verdict.refuse(over: rate.rate) }
  }
}
