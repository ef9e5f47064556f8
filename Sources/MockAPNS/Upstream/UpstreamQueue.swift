import APNSMockInbox
import APNSMockNotation
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import APNSMockPlatformLibc
import APNSMockTLSEngine

/// The requests of one team that wait for a connection to upstream, and that connection. Confined to one event loop.
final class UpstreamQueue {
  /// What the queues of a pool have in common.
  struct Shared {
    var figures = UpstreamPool.Figures()
    /// The size of all waiting requests.
    var waitingBytes = 0
    /// What the files of certificates and keys contained; they are read again after a connection without an answer.
    var tlsContext: TLSContext?
  }

  /// What this queue has of the figures of the pool.
  private struct Load {
    var waiting = 0
    var waitingBytes = 0
    var open = 0
    var connections = 0
  }

  /// The most requests that wait in all queues, and their size in bytes.
  private static let maxWaiting = 10_000
  private static let maxWaitingBytes = 32 << 20
  /// How long a request waits for a free stream, in nanoseconds.
  private static let maxWait: Int64 = 10_000_000_000
  /// The first and the longest time between attempts to connect, in nanoseconds.
  private static let retryDelays = (first: Int64(200_000_000), last: Int64(5_000_000_000))
  private static let checkInterval = TimeAmount.milliseconds(500)

  private let settings: UpstreamSettings
  private let eventLoop: any EventLoop
  private let shared: NIOLockedValueBox<Shared>
  private var waiting = CircularBuffer<(push: UpstreamPush, since: MonotonicTime)>()
  /// What was added to the figures of the pool.
  private var counted = Load()
  private var waitingBytes = 0
  /// The connection, and former ones whose last responses are expected.
  private var connections: [UpstreamConnection] = []
  private var retryDelay = UpstreamQueue.retryDelays.first
  /// When the next attempt to connect may be made, and why the last one failed.
  private var retry: (at: MonotonicTime, problem: String)?
  private var check: RepeatedTask?
  private var isSending = false
  /// Whether the connection ends once its requests are answered.
  private var isRetired = false
  private var isClosing = false

  init(_ settings: UpstreamSettings, on eventLoop: any EventLoop, _ shared: NIOLockedValueBox<Shared>) {
    self.settings = settings
    self.eventLoop = eventLoop
    self.shared = shared
  }

  func add(_ pushes: ArraySlice<UpstreamPush>) {
    let now = MachineTime.nanoseconds
    var room = shared.withLockedValue {
      (count: Self.maxWaiting - $0.figures.waiting, bytes: Self.maxWaitingBytes - $0.waitingBytes)
    }
    var excess: [UpstreamPush] = []
    for push in pushes {
      if room.count <= 0 || room.bytes <= 0 {
        excess.append(push)
      } else {
        waiting.append((push, now))
        waitingBytes += push.size
        room = (room.count - 1, room.bytes - push.size)
      }
    }
    refuse(excess, "\(Self.maxWaiting) pushes wait for \(settings.peer)")
    sendWaiting()
    if check == nil {
      check = eventLoop.scheduleRepeatedTask(initialDelay: Self.checkInterval, delay: Self.checkInterval) {
        [bound = NIOLoopBound(self, eventLoop: eventLoop)] _ in bound.value.checkTimeouts()
      }
    }
  }

  /// Resets the stream of a request that its provider has given up.
  func abandon(_ push: UpstreamPush) {
    guard let connection = connections.first(where: { $0.abandon(push) }) else { return }
    connectionDidChange(connection)
  }

  /// Closes the connection once its requests are answered.
  func retire() {
    isRetired = true
    checkTimeouts()
  }

  func close(_ reason: String) {
    check?.cancel()
    check = nil
    isClosing = true
    // A request that is added later gets a connection for itself.
    isRetired = true
    // First, so that no connection is opened for them.
    refuseAll(reason)
    for connection in connections { connection.end(reason) }
    isClosing = false
  }

  // MARK: - Sending

  /// Sends the waiting requests for which there is a free stream.
  private func sendWaiting() {
    // A connection that ends while a request is sent calls back.
    guard !isSending else { return }
    isSending = true
    var used: UpstreamConnection?
    while let first = waiting.first {
      if !first.push.isCanceled {
        guard let connection = usableConnection(), connection.hasCapacity else { break }
        connection.send(first.push)
        used = connection
      }
      waiting.removeFirst()
      waitingBytes -= first.push.size
    }
    isSending = false
    used?.flush()
    updateFigures()
  }

  /// Returns the connection that accepts requests, now or after its handshakes; opens one if there is none.
  private func usableConnection() -> UpstreamConnection? {
    let usable = connections.first { $0.state != .draining }
    if usable == nil { connect() }
    return usable
  }

  private func connect() {
    if let retry, MachineTime.nanoseconds < retry.at {
      if connections.isEmpty { refuseAll(retry.problem) }
      return
    }
    let connection: UpstreamConnection
    do {
      let tlsContext = try shared.withLockedValue(\.tlsContext) ?? settings.tlsContext()
      let number = shared.withLockedValue { shared in
        shared.tlsContext = tlsContext
        shared.figures.connectionsMade += 1
        return shared.figures.connectionsMade
      }
      connection = try UpstreamConnection(number: number, to: settings, tlsContext, queue: self)
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
      .channelOption(.maxMessagesPerRead, value: 1)
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
        case .failure(let error):
          bound.value.end("cannot connect to \(proxy == nil ? "" : "the proxy ")\(address): \(Self.reason(error))")
        }
      }
  }

  /// Returns why a connection failed, in a few words.
  static func reason(_ error: any Error) -> String {
    let failure = error as? NIOConnectionError
    if let failure, failure.connectionErrors.isEmpty { return "the host \(failure.host) is unknown" }
    switch failure?.connectionErrors.last?.error ?? error {
    case let error as IOError: return error.reason
    case let error: return "\(error)"
    }
  }

  private func connectFailed(_ problem: String) {
    retry = (MachineTime.nanoseconds + retryDelay, problem)
    retryDelay = min(retryDelay * 2, Self.retryDelays.last)
    if connections.isEmpty { refuseAll(problem) }
  }

  // MARK: - Ends

  /// More requests may be sent, or the connection has closed.
  func connectionDidChange(_ connection: UpstreamConnection) {
    shared.withLockedValue { shared in
      if let settings = connection.settings { shared.figures.settings = settings }
      if let goAway = connection.goAway { shared.figures.goAway = goAway }
    }
    if connection.state == .closed, let index = connections.firstIndex(where: { $0 === connection }) {
      connections.remove(at: index)
      let problem = connection.problem ?? "the connection ended"
      // Pushes that are refused for it are counted one by one.
      let refusesPushes = !connection.hasAnswered && connections.isEmpty && !waiting.isEmpty
      if !isClosing, !refusesPushes { shared.withLockedValue { $0.figures.add(problem: problem) } }
      if connection.hasAnswered {
        (retry, retryDelay) = (nil, Self.retryDelays.first)
      } else {
        // A file may have been replaced.
        shared.withLockedValue { $0.tlsContext = nil }
        connectFailed(problem)
      }
    }
    sendWaiting()
  }

  private func refuseAll(_ problem: String) {
    let pushes = waiting.map(\.push)
    waiting.removeAll()
    waitingBytes = 0
    refuse(pushes, problem)
  }

  private func refuse(_ pushes: [UpstreamPush], _ problem: @autoclosure () -> String) {
    // A canceled request needs no answer.
    let refused = pushes.filter { $0.beginSending() }
    guard !refused.isEmpty else { return }
    let problem = problem()
    complete(refused.map { ($0, UpstreamAnswer(result: .refused(problem), connection: nil, latency: nil)) })
  }

  /// Counts the ends of requests and passes them on.
  func complete(_ ended: [(push: UpstreamPush, answer: UpstreamAnswer)]) {
    shared.withLockedValue { shared in
      for (_, answer) in ended { shared.figures.count(answer, from: settings) }
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
    refuse(overdue, "\(settings.peer) had no free stream for 10 s")
    sendWaiting()
    if waiting.isEmpty, !connections.contains(where: { $0.state == .connecting || $0.openRequests > 0 }) {
      check?.cancel()
      check = nil
      if isRetired { close("the connection is needed for another team") }
    }
  }

  private func updateFigures() {
    let load = Load(
      waiting: waiting.count, waitingBytes: waitingBytes, open: connections.reduce(0) { $0 + $1.openRequests },
      connections: connections.count { $0.state == .open || $0.state == .draining })
    shared.withLockedValue { shared in
      shared.figures.waiting += load.waiting - counted.waiting
      shared.waitingBytes += load.waitingBytes - counted.waitingBytes
      shared.figures.open += load.open - counted.open
      shared.figures.connections += load.connections - counted.connections
    }
    counted = load
  }
}
