internal import Dispatch
internal import Hummingbird
internal import HummingbirdCore
internal import Logging
internal import MockAPNS
internal import NIOCore
internal import NIOHTTPTypes
internal import NIOPosix
internal import APNSMockPlatformLibc
internal import Synchronization

/// Accepts the connections of the admin API, so that a health check waits for no other client.
///
/// The web framework accepts a connection when its event loop has set up those before it. Beside thousands of waits that
/// are opened and closed, the queue of the system is full then; the system drops the SYN of a health check, and its client
/// repeats it after a second. Therefore a thread that does nothing else accepts connections at once, and reads ahead the
/// first bytes of each. Health checks and the connections of the reserve have an event loop of their own. The other
/// connections wait here until their event loop has set up most of the previous ones, the newest first: a client that still
/// waits has more often connected recently than those that came before it.
/// Measured with the program of `make run` beside 10,000 waits: a health check takes 0.1 s, 1.3 s without this.
final class AdminListener: Sendable {
  /// The event loops: of health checks and the reserve, and of all other connections. They are apart from those of the
  /// listeners for pushes, whose TLS handshakes take long, and are shared by all listeners of the process.
  private static let healthEventLoops = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  static let eventLoops = MultiThreadedEventLoopGroup(numberOfThreads: 1)

  /// The maximum number of connections that wait in the system's queue.
  private static let backlog: CInt = 1024
  /// The maximum number of connections that are accepted before those that have sent something are handed over.
  private static let maxAcceptedAtOnce = 64
  /// The maximum number of connections that an event loop has received and not read from yet; the others wait for their
  /// turn. Without a limit, setting them up would keep the event loop from reading from any.
  private static let maxUnread = 32
  /// The time in which a client must send the first bytes of a health check; a later one shares the event loop of the
  /// other connections. Also the delay after which the connection of a client that has closed its side is closed.
  private static let silence = HalfCloseHandler.closeDelay
  /// The time, in milliseconds, after which the thread looks again for what it cannot be notified of: a place in the event
  /// loop, a closed connection if all may be open, or a free descriptor.
  private static let pause: CInt = 2

  /// What the first bytes of a health check are.
  private static let healthChecks = HealthRoutes.paths.flatMap { ["GET \($0)", "HEAD \($0)"] }.map { Array($0.utf8) }

  let port: Int
  private let listening: BoundSocket
  /// A pipe: a byte in it stops the thread that accepts.
  private let stopPipe: (read: CInt, write: CInt)
  private let queue = DispatchQueue(label: "apns-mock.accept")
  private let connections: AdminConnections
  /// The number of regular connections that have sent something, and that their event loop has not read from.
  private let unread = Atomic(0)
  private let regular: HTTP1Channel
  private let reserve: HTTP1Channel
  private let logger: Logger

  /// Binds an address, and listens.
  ///
  /// - Parameter http: Creates the HTTP server of regular connections, and that of the connections of the reserve.
  /// - Throws: `ListenError` if the address cannot be bound.
  init(
    at address: MockServer.Endpoint, connections: AdminConnections, logger: Logger,
    http: (_ isRegular: Bool) -> HTTP1Channel
  ) throws {
    var pipe: [CInt] = [-1, -1]
    do {
      listening = try BoundSocket(address)
      guard listen(listening.descriptor, Self.backlog) == 0, APNSMockPlatformLibc.pipe(&pipe) == 0 else {
        let code = errno
        listening.close()
        throw IOError(errnoCode: code, reason: "listen")
      }
    } catch {
      throw ListenError(endpoint: address, purpose: "the admin API", flag: "--admin", cause: error)
    }
    for descriptor in [listening.descriptor, pipe[0], pipe[1]] { Self.configure(descriptor) }
    // Starts the event loops, which need descriptors, while there are some.
    for loops in [Self.healthEventLoops, Self.eventLoops] { _ = loops.next() }
    stopPipe = (pipe[0], pipe[1])
    port = listening.port
    self.connections = connections
    self.logger = logger
    regular = http(true)
    reserve = http(false)
  }

  deinit {
    for descriptor in [stopPipe.read, stopPipe.write] { _ = APNSMockPlatformLibc.close(descriptor) }
  }

  /// Accepts and serves connections until `stop()` is called and all of them are closed.
  func run() async {
    let (accepted, continuation) = AsyncStream.makeStream(of: HTTP1Channel.Value.self)
    queue.async { self.accept(continuation) }
    await withDiscardingTaskGroup { [regular, logger] group in
      for await connection in accepted {
        group.addTask {
          let requests = Task { await regular.handle(value: connection, logger: logger) }
          // Otherwise a response of any length would be written to its end after the client has left.
          connection.channel.closeFuture.whenComplete { _ in requests.cancel() }
          await requests.value
        }
      }
    }
  }

  /// Stops listening, and ends each connection after its current request.
  func stop() {
    var byte: UInt8 = 0
    _ = write(stopPipe.write, &byte, 1)
    connections.endAfterRequests()
  }

  // MARK: The thread that accepts

  /// An accepted connection without an event loop.
  private struct Connection {
    let descriptor: CInt
    /// Whether it is not one of the reserve.
    let isRegular: Bool
    /// When it is handed over although it has sent nothing, and from when on it is closed if its client has ended it.
    let deadline: NIODeadline

    /// Whether the client has closed its side, or the connection.
    var isEnded: Bool {
      #if os(Linux)
        let peerClosed: Int16 = 0x2000  // POLLRDHUP, which Swift does not import
      #else
        let peerClosed: Int16 = 0
      #endif
      var polled = pollfd(fd: descriptor, events: peerClosed, revents: 0)
      return poll(&polled, 1, 0) == 1
    }
  }

  private func accept(_ accepted: AsyncStream<HTTP1Channel.Value>.Continuation) {
    /// The connections that have sent nothing.
    var silent: [Connection] = []
    /// The regular connections that wait for their event loop.
    var waiting: [Connection] = []
    var throttle = LogThrottle()
    var cannotAccept = false
    while true {
      // poll ignores a negative descriptor.
      let canAccept = !cannotAccept && connections.hasCapacity
      var polled = [stopPipe.read, canAccept ? listening.descriptor : -1].map { pollfd($0) }
      polled += silent.map { pollfd($0.descriptor) }
      let next = silent.first.map { CInt(max(0, ($0.deadline - .now()).nanoseconds / 1_000_000 + 1)) } ?? -1
      _ = poll(&polled, nfds_t(polled.count), canAccept && waiting.isEmpty ? next : Self.pause)
      if polled[0].revents != 0 { break }

      let now = NIODeadline.now()
      var remaining: [Connection] = []
      for (connection, poll) in zip(silent, polled.dropFirst(2)) {
        guard poll.revents != 0 || connection.deadline <= now else {
          remaining.append(connection)
          continue
        }
        let hasSent = poll.revents != 0
        if !connection.isRegular || hasSent && Self.isHealthCheck(connection.descriptor) {
          handOver(connection.descriptor, to: Self.healthEventLoops, isRegular: connection.isRegular, accepted)
        } else if hasSent {
          waiting.append(connection)
        } else {
          handOver(connection.descriptor, to: Self.eventLoops, isRegular: true, accepted)
        }
      }
      silent = remaining
      while unread.load(ordering: .relaxed) < Self.maxUnread, let connection = waiting.popLast() {
        // Its client would get no response any more (`HalfCloseHandler`).
        if connection.deadline <= now, connection.isEnded {
          close(connection)
          continue
        }
        unread.add(1, ordering: .relaxed)
        let firstRead = { @Sendable [self] () -> Void in _ = unread.subtract(1, ordering: .relaxed) }
        handOver(connection.descriptor, to: Self.eventLoops, isRegular: true, accepted, onFirstRead: firstRead)
      }

      cannotAccept = false
      guard polled[1].revents != 0 else { continue }
      for _ in 0..<Self.maxAcceptedAtOnce where connections.hasCapacity {
        let descriptor = APNSMockPlatformLibc.accept(listening.descriptor, nil, nil)
        guard descriptor >= 0 else {
          cannotAccept = ![EAGAIN, EWOULDBLOCK, EINTR, ECONNABORTED].contains(errno)
          if cannotAccept, throttle.shouldLog() { logAcceptError(errno) }
          break
        }
        Self.configure(descriptor)
        silent.append(
          Connection(descriptor: descriptor, isRegular: connections.open(), deadline: now + Self.silence))
      }
    }
    listening.close()
    for connection in silent + waiting { close(connection) }
    // After the connections that are handed over, because each event loop has a single thread.
    for loops in [Self.healthEventLoops, Self.eventLoops] { try? loops.next().submit {}.wait() }
    accepted.finish()
  }

  /// Closes a connection that has no event loop.
  private func close(_ connection: Connection) {
    _ = APNSMockPlatformLibc.close(connection.descriptor)
    connections.close(nil, isRegular: connection.isRegular)
  }

  /// Makes an accepted connection one of an event loop.
  ///
  /// - Parameters:
  ///   - isRegular: Whether the connection is not one of the reserve.
  ///   - onFirstRead: Called once, when the event loop has read from the connection, or closed it.
  private func handOver(
    _ descriptor: CInt, to eventLoops: MultiThreadedEventLoopGroup, isRegular: Bool,
    _ accepted: AsyncStream<HTTP1Channel.Value>.Continuation, onFirstRead: @escaping @Sendable () -> Void = {}
  ) {
    let http = isRegular ? regular : reserve
    _ = ClientBootstrap(group: eventLoops)
      .channelOption(.allowRemoteHalfClosure, value: true)
      .channelInitializer { [connections, logger] channel in
        channel.closeFuture.whenComplete { _ in connections.close(channel, isRegular: isRegular) }
        return channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(FirstReadHandler(onFirstRead))
        }.flatMap { http.setup(channel: channel, logger: logger) }.map { connection in
          accepted.yield(connection)
          connections.add(channel)
        }
      }
      .withConnectedSocket(descriptor)
  }

  /// Returns whether what has arrived on a connection begins like a health check; it remains to be read.
  private static func isHealthCheck(_ descriptor: CInt) -> Bool {
    // The value is the same on all platforms, its Swift type is not.
    let peek: CInt = 2
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = recv(descriptor, &bytes, bytes.count, peek)
    return count > 0 && healthChecks.contains { bytes.prefix(count).starts(with: $0) }
  }

  private static func configure(_ descriptor: CInt) {
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  }

  private func logAcceptError(_ code: CInt) {
    logger.warning(
      """
      cannot accept a connection to the admin API: \(IOError(errnoCode: code, reason: "accept")). If too many files are \
      open, raise the limit with ulimit -n (logged at most once a minute)
      """)
  }
}

extension pollfd {
  /// Waits for data on a descriptor.
  fileprivate init(_ descriptor: CInt) { self.init(fd: descriptor, events: Int16(POLLIN), revents: 0) }
}

/// Reports that the first bytes of a connection were read, or that it was closed before.
private final class FirstReadHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private var report: (() -> Void)?

  init(_ report: @escaping () -> Void) { self.report = report }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    reportOnce()
    context.fireChannelRead(data)
  }

  func handlerRemoved(context: ChannelHandlerContext) { reportOnce() }

  private func reportOnce() {
    report?()
    report = nil
  }
}
