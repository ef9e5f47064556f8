import APNSMockHTTP2Session
package import APNSMockHTTPMessage
import APNSMockInbox
import APNSMockNotation
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import APNSMockPlatformLibc
import APNSMockTLSEngine

/// The connections to upstream, over which requests are forwarded. Memory and time are bounded: requests that wait for
/// too long or are too many, and those without a response in time, end with a reason.
package final class UpstreamPool: Sendable {
  /// What was counted and observed since the start.
  package struct Figures: Sendable {
    /// The requests that were answered by upstream, that were not sent or refused, and whose decision is unknown.
    package fileprivate(set) var answered = 0
    package fileprivate(set) var refused = 0
    package fileprivate(set) var unknown = 0
    /// The requests that wait for a free stream, and those without an answer.
    package fileprivate(set) var waiting = 0
    package fileprivate(set) var open = 0
    /// The connections that are open, and that were made.
    package fileprivate(set) var connections = 0
    package fileprivate(set) var connectionsMade = 0
    /// The first SETTINGS and the GOAWAY of the newest connection.
    package fileprivate(set) var settings: ProbeResult.Settings?
    package fileprivate(set) var goAway: String?
    /// The problems in one sentence each, with their counts; the newest last.
    package fileprivate(set) var problems: [(text: String, count: Int)] = []

    private static let maxProblems = 20

    fileprivate mutating func add(problem text: String) {
      var count = 1
      if let index = problems.firstIndex(where: { $0.text == text }) { count += problems.remove(at: index).count }
      problems.append((text, count))
      if problems.count > Self.maxProblems { problems.removeFirst() }
    }
  }

  package let settings: UpstreamSettings
  private let eventLoop: any EventLoop
  private let connections: NIOLoopBoundBox<UpstreamConnections?>
  private let figuresNow: NIOLockedValueBox<Figures>

  /// Creates a pool. It connects when the first request is forwarded.
  package init(_ settings: UpstreamSettings) {
    self.settings = settings
    eventLoop = MultiThreadedEventLoopGroup.singleton.next()
    connections = .makeEmptyBox(valueType: UpstreamConnections.self, eventLoop: eventLoop)
    figuresNow = NIOLockedValueBox(Figures())
  }

  /// What was counted until now.
  package var figures: Figures { figuresNow.withLockedValue { $0 } }

  /// Forwards requests; their receivers get the answers.
  func forward(_ pushes: [UpstreamPush]) {
    eventLoop.execute { [self] in
      let connections =
        self.connections.value ?? UpstreamConnections(settings, on: eventLoop, figures: figuresNow)
      self.connections.value = connections
      connections.add(pushes)
    }
  }

  /// Forwards one request and returns its end. `headers` begin with the pseudo-header fields.
  package func send(_ headers: HeaderList, _ body: [UInt8]) async -> UpstreamAnswer {
    let headers = headers.bytes.withUnsafeBytes { settings.headers(from: $0) }
    return await withCheckedContinuation { continuation in
      let receiver = UpstreamReceiver(on: eventLoop) { answers in
        for answer in answers { continuation.resume(returning: answer.answer) }
      }
      forward([UpstreamPush(headers: headers, body: body, team: nil, stream: 1, receiver: receiver)])
    }
  }

  /// Closes all connections. Later requests open new ones.
  package func close() async {
    try? await eventLoop.submit { [connections] in
      connections.value?.close()
      connections.value = nil
    }.get()
  }
}

/// The connections of a pool and the requests that wait for them. Confined to one event loop.
private final class UpstreamConnections: UpstreamConnection.Owner {
  /// The most requests that wait, and their size in bytes.
  private static let maxWaiting = 10_000
  private static let maxWaitingBytes = 32 << 20
  /// How long a request waits for a free stream, in nanoseconds.
  private static let maxWait: Int64 = 10_000_000_000
  /// The first and the longest time between attempts to connect, in nanoseconds.
  private static let retryDelays = (first: Int64(200_000_000), last: Int64(5_000_000_000))
  private static let checkInterval = TimeAmount.milliseconds(500)

  private let settings: UpstreamSettings
  private let eventLoop: any EventLoop
  private let figures: NIOLockedValueBox<UpstreamPool.Figures>
  private var waiting = CircularBuffer<(push: UpstreamPush, since: MonotonicTime)>()
  private var waitingBytes = 0
  private var connections: [UpstreamConnection] = []
  private var connectionsMade = 0
  private var retryDelay = UpstreamConnections.retryDelays.first
  /// When the next attempt to connect may be made, and why the last one failed.
  private var retry: (at: MonotonicTime, problem: String)?
  private var check: RepeatedTask?
  private var isSending = false

  init(_ settings: UpstreamSettings, on eventLoop: any EventLoop, figures: NIOLockedValueBox<UpstreamPool.Figures>) {
    self.settings = settings
    self.eventLoop = eventLoop
    self.figures = figures
  }

  func add(_ pushes: [UpstreamPush]) {
    let now = MachineTime.nanoseconds
    var excess: [UpstreamPush] = []
    for push in pushes {
      if waiting.count >= Self.maxWaiting || waitingBytes >= Self.maxWaitingBytes {
        excess.append(push)
      } else {
        waiting.append((push, now))
        waitingBytes += push.size
      }
    }
    refuse(excess, "\(Self.maxWaiting) pushes wait for \(settings.endpoint)")
    sendWaiting()
    if check == nil {
      check = eventLoop.scheduleRepeatedTask(initialDelay: Self.checkInterval, delay: Self.checkInterval) {
        [bound = NIOLoopBound(self, eventLoop: eventLoop)] _ in bound.value.checkTimeouts()
      }
    }
  }

  func close() {
    check?.cancel()
    check = nil
    // First, so that no connection is opened for them.
    refuseAll("the server stops")
    for connection in connections { connection.end("the server stops") }
  }

  // MARK: - Sending

  /// Sends the waiting requests for which there is a free stream.
  private func sendWaiting() {
    // A connection that ends while a request is sent calls back.
    guard !isSending else { return }
    isSending = true
    var used: [UpstreamConnection] = []
    while let first = waiting.first {
      if !first.push.isCanceled {
        guard let connection = connection(for: first.push) else { break }
        connection.send(first.push)
        if !used.contains(where: { $0 === connection }) { used.append(connection) }
      }
      waiting.removeFirst()
      waitingBytes -= first.push.size
    }
    isSending = false
    for connection in used { connection.flush() }
    updateFigures()
  }

  /// Returns the connection for a request, of its team if there is one; nil if it has to wait. Opens a connection if one
  /// is missing.
  private func connection(for push: UpstreamPush) -> UpstreamConnection? {
    let best = connections.first {
      $0.hasCapacity && ($0.team == push.team || $0.team == nil || push.team == nil)
    }
    if let best { return best }
    let isConnecting = connections.contains { $0.state == .connecting }
    // One that received GOAWAY accepts no request.
    let usable = connections.count { $0.state != .draining }
    if !isConnecting, usable < settings.connections { connect() }
    let isFull = usable >= settings.connections || retry.map { MachineTime.nanoseconds < $0.at } ?? false
    return isFull ? connections.filter(\.hasCapacity).min { $0.openRequests < $1.openRequests } : nil
  }

  private func connect() {
    if let retry, MachineTime.nanoseconds < retry.at {
      if connections.isEmpty { refuseAll(retry.problem) }
      return
    }
    connectionsMade += 1
    let connection: UpstreamConnection
    do {
      connection = try UpstreamConnection(
        number: connectionsMade, to: settings, settings.tlsContext(), owner: self)
    } catch {
      return connectFailed("\(error)")
    }
    connections.append(connection)
    let address = settings.proxy?.endpoint ?? settings.endpoint
    let bound = NIOLoopBound(connection, eventLoop: eventLoop)
    let proxy = settings.proxy
    let endpoint = settings.endpoint
    ClientBootstrap(group: eventLoop)
      .connectTimeout(.nanoseconds(UpstreamConnection.connectTimeout))
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          if let proxy {
            try pipeline.addHandler(ConnectTunnelHandler(through: proxy, to: endpoint, then: bound.value))
          } else {
            try pipeline.addHandler(bound.value)
          }
        }
      }
      .connect(host: address.host, port: address.port)
      .assumeIsolated().whenComplete { result in
        switch result {
        case .success(let channel): bound.value.connected(channel)
        case .failure(let error): bound.value.end("cannot connect to \(address): \(Self.reason(error))")
        }
      }
  }

  /// Returns why a connection failed, in a few words.
  private static func reason(_ error: any Error) -> String {
    let failure = error as? NIOConnectionError
    if let failure, failure.connectionErrors.isEmpty { return "the host \(failure.host) is unknown" }
    switch failure?.connectionErrors.last?.error ?? error {
    case let error as IOError: return String(cString: strerror(error.errnoCode)).lowercased()
    case let error: return "\(error)"
    }
  }

  private func connectFailed(_ problem: String) {
    retry = (MachineTime.nanoseconds + retryDelay, problem)
    retryDelay = min(retryDelay * 2, Self.retryDelays.last)
    if connections.isEmpty { refuseAll(problem) }
  }

  // MARK: - Ends

  func connectionDidChange(_ connection: UpstreamConnection) {
    figures.withLockedValue { figures in
      if let settings = connection.settings { figures.settings = settings }
      if connection.state != .open { figures.goAway = connection.goAway }
    }
    if connection.state == .closed, let index = connections.firstIndex(where: { $0 === connection }) {
      connections.remove(at: index)
      let problem = connection.problem ?? "the connection ended"
      figures.withLockedValue { $0.add(problem: problem) }
      if connection.hasAnswered {
        (retry, retryDelay) = (nil, Self.retryDelays.first)
      } else {
        connectFailed(problem)
      }
    }
    sendWaiting()
  }

  func connection(_ connection: UpstreamConnection, didEnd ended: [(push: UpstreamPush, answer: UpstreamAnswer)]) {
    complete(ended)
  }

  private func refuseAll(_ problem: String) {
    let pushes = waiting.map(\.push)
    waiting.removeAll()
    waitingBytes = 0
    refuse(pushes, problem)
  }

  private func refuse(_ pushes: [UpstreamPush], _ problem: String) {
    // A canceled request needs no answer.
    let refused = pushes.filter { $0.beginSending() }
    guard !refused.isEmpty else { return }
    complete(refused.map { ($0, UpstreamAnswer(result: .refused(problem), connection: nil, latency: nil)) })
  }

  private func complete(_ ended: [(push: UpstreamPush, answer: UpstreamAnswer)]) {
    figures.withLockedValue { figures in
      for (_, answer) in ended { figures.count(answer, from: settings.endpoint) }
    }
    var groups: [(receiver: UpstreamReceiver, answers: [(stream: Int32, answer: UpstreamAnswer)])] = []
    for (push, answer) in ended {
      if let last = groups.indices.last, groups[last].receiver === push.receiver {
        groups[last].answers.append((push.stream, answer))
      } else {
        groups.append((push.receiver, [(push.stream, answer)]))
      }
    }
    for group in groups { group.receiver.complete(group.answers) }
  }

  private func checkTimeouts() {
    let now = MachineTime.nanoseconds
    for connection in connections { connection.checkTimeouts(now: now) }
    var overdue: [UpstreamPush] = []
    while let first = waiting.first, first.push.isCanceled || now - first.since > Self.maxWait {
      waiting.removeFirst()
      waitingBytes -= first.push.size
      overdue.append(first.push)
    }
    refuse(overdue, "\(settings.endpoint) had no free stream for 10 s")
    sendWaiting()
    if waiting.isEmpty, !connections.contains(where: { $0.state == .connecting || $0.openRequests > 0 }) {
      check?.cancel()
      check = nil
    }
  }

  private func updateFigures() {
    figures.withLockedValue { figures in
      figures.waiting = waiting.count
      figures.open = connections.reduce(0) { $0 + $1.openRequests }
      figures.connections = connections.count { $0.state == .open || $0.state == .draining }
      figures.connectionsMade = connectionsMade
    }
  }
}

extension UpstreamPool.Figures {
  fileprivate mutating func count(_ answer: UpstreamAnswer, from endpoint: MockServer.Endpoint) {
    switch answer.result {
    case .response:
      answered += 1
      let status = answer.status ?? 0
      // Other rejections are those of single pushes; a wrong credential concerns every push.
      if status == 200 || answer.reason != nil && [400, 410, 413].contains(status) { return }
      let cause = answer.reason ?? "without a reason: it may not be APNs"
      add(problem: "\(endpoint) answers \(status) \(cause)")
    case .excluded: refused += 1
    case .refused(let problem):
      refused += 1
      if answer.connection == nil { add(problem: problem) }
    case .unknown: unknown += 1
    }
  }
}
