import APNSMockHTTP2Session
import APNSMockHTTPMessage
import APNSMockInbox
import APNSMockNotation
import NIOCore
import APNSMockTLSEngine

/// Channel handler of one connection to upstream, which stays open for any number of requests. Confined to the
/// connection's event loop.
final class UpstreamConnection: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The stages of a connection.
  enum State {
    /// TLS or HTTP/2 is not established: the first SETTINGS were not received.
    case connecting
    case open
    /// Upstream sent GOAWAY: no further requests are sent.
    case draining
    case closed
  }

  /// The most requests that are sent at once, whatever upstream allows.
  private static let maxStreams = 1000
  /// The time limits for the handshakes, and for the response to a request.
  static let connectTimeout = Int64(10_000_000_000)
  static let responseTimeout = Int64(30_000_000_000)

  /// The number of the connection, from 1.
  let number: Int
  private(set) var state = State.connecting
  /// Why the connection ended, or sent GOAWAY, in one sentence; nil if it has not.
  private(set) var problem: String?
  /// Whether upstream has answered a request.
  private(set) var hasAnswered = false
  /// The first SETTINGS.
  private(set) var settings: ProbeResult.Settings?
  /// The text of the GOAWAY, if one was received.
  private(set) var goAway: String?

  private let settingsOfUpstream: UpstreamSettings
  private let tls: TLSConnection
  private var session: HTTP2ClientSession?
  private var context: ChannelHandlerContext?
  private var channel: (any Channel)?
  private weak var queue: UpstreamQueue?
  private let startedAt = MachineTime.nanoseconds
  /// When bytes were received last.
  private var receivedAt = MachineTime.nanoseconds
  private var streamLimit = UpstreamConnection.maxStreams
  private var sent: [Int32: (push: UpstreamPush, at: MonotonicTime)] = [:]
  private var ended: [(push: UpstreamPush, answer: UpstreamAnswer)] = []

  init(number: Int, to upstream: UpstreamSettings, _ tlsContext: TLSContext, queue: UpstreamQueue) throws {
    self.number = number
    settingsOfUpstream = upstream
    tls = try TLSConnection(client: tlsContext, serverName: upstream.endpoint.host)
    self.queue = queue
  }

  /// Whether a request can be sent now.
  var hasCapacity: Bool { state == .open && sent.count < streamLimit }

  /// The number of requests without an answer.
  var openRequests: Int { sent.count }

  // MARK: - Requests

  /// Sends a request, unless it was canceled. `flush` must follow.
  func send(_ push: UpstreamPush) {
    guard let session, push.beginSending() else { return }
    do {
      let stream = try session.request(headers: push.headers, body: push.body)
      push.upstreamStream = stream
      sent[stream] = (push, MachineTime.nanoseconds)
    } catch {
      // No stream identifiers are left, or upstream is going away.
      state = .draining
      ended.append((push, UpstreamAnswer(result: .refused("\(error)"), connection: number, latency: nil)))
    }
  }

  /// Resets the stream of a request that its provider has given up, and returns whether it was sent here.
  func abandon(_ push: UpstreamPush) -> Bool {
    let stream = push.upstreamStream
    guard let request = sent[stream], request.push === push else { return false }
    sent[stream] = nil
    session?.cancel(stream)
    finish(request, .unknown("the provider gave up before upstream had answered"))
    flush()
    return true
  }

  /// Writes what `send` has prepared.
  func flush() {
    guard let context else { return }
    writeFrames(context)
    report()
    if state == .draining, sent.isEmpty { end(problem ?? "the connection ended") }
  }

  /// Ends the connection if its handshakes take too long, and requests whose response is overdue.
  func checkTimeouts(now: MonotonicTime) {
    if state == .connecting, now - startedAt > Self.connectTimeout {
      return end("no connection to \(settingsOfUpstream.peer) within 10 s")
    }
    let overdue = sent.filter { now - $0.value.at > Self.responseTimeout }
    guard !overdue.isEmpty else { return }
    let problem = "\(settingsOfUpstream.peer) did not answer within 30 s"
    // Later requests may still be answered, even if nothing was received since.
    if overdue.count == sent.count, now - receivedAt > Self.responseTimeout { return end(problem) }
    for (stream, request) in overdue {
      sent[stream] = nil
      session?.cancel(stream)
      finish(request, .unknown(problem))
    }
    flush()
    queue?.connectionDidChange(self)
  }

  /// Closes the connection. Requests without an answer are undecided.
  func end(_ problem: String) {
    guard state != .closed else { return }
    self.problem = self.problem ?? problem
    state = .closed
    for (_, request) in sent { finish(request, .unknown(problem)) }
    sent = [:]
    let context = context
    self.context = nil
    report()
    queue?.connectionDidChange(self)
    // Through a proxy, the channel has another handler first.
    context?.close(promise: nil)
    channel?.close(promise: nil)
    channel = nil
  }

  private func finish(_ request: (push: UpstreamPush, at: MonotonicTime), _ result: UpstreamResult) {
    ended.append(
      (
        request.push,
        UpstreamAnswer(result: result, connection: number, latency: MachineTime.nanoseconds - request.at)
      ))
  }

  private func report() {
    guard !ended.isEmpty else { return }
    let reported = ended
    ended.removeAll(keepingCapacity: true)
    queue?.complete(reported)
  }

  // MARK: - Channel events

  /// Keeps the channel, to close it with the connection.
  func connected(_ channel: any Channel) {
    if state == .closed { channel.close(promise: nil) } else { self.channel = channel }
  }

  func handlerAdded(context: ChannelHandlerContext) {
    // NIO adds the handler to a channel for each address of the host. The first that becomes active is used.
    if context.channel.isActive { begin(context) }
  }

  func channelActive(context: ChannelHandlerContext) { begin(context) }

  private func begin(_ context: ChannelHandlerContext) {
    guard state != .closed, self.context == nil else { return context.close(promise: nil) }
    self.context = context
    handleReceivedBytes(context)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard context === self.context else { return }
    receivedAt = MachineTime.nanoseconds
    unwrapInboundIn(data).withUnsafeReadableBytes { tls.receive($0) }
    handleReceivedBytes(context)
  }

  func channelInactive(context: ChannelHandlerContext) {
    guard context === self.context else { return }
    end("\(settingsOfUpstream.peer) closed the connection")
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard context === self.context else { return }
    end("the connection to \(settingsOfUpstream.peer) failed: \(UpstreamQueue.reason(error))")
  }

  private func handleReceivedBytes(_ context: ChannelHandlerContext) {
    guard state != .closed else { return }
    do {
      if session == nil {
        guard try tls.handshake() == .done else { return tls.flush(to: context) }
        guard tls.negotiatedHTTP2 else {
          return end("\(settingsOfUpstream.peer) does not speak HTTP/2: it is not APNs")
        }
        session = try HTTP2ClientSession()
      }
      guard let session else { return }
      let isClosed = try session.receive(from: tls) { handle($0) }
      writeFrames(context)
      report()
      if isClosed { return end("\(settingsOfUpstream.peer) closed the connection") }
      if state == .draining, sent.isEmpty { return end(problem ?? "the connection ended") }
      if session.isFinished {
        return end("the connection to \(settingsOfUpstream.peer) failed: it sent what is not HTTP/2")
      }
      queue?.connectionDidChange(self)
    } catch {
      // Before anything is written: if upstream has closed the connection, writing ends it.
      let text = problem(of: error)
      problem = problem ?? text
      tls.flush(to: context)
      end(text)
    }
  }

  private func problem(of error: any Error) -> String {
    let endpoint = settingsOfUpstream.peer
    if let fault = tls.peerCertificateFault {
      let advice = fault.kind == .unknownAuthority ? "; name its CA with --upstream-ca FILE" : ""
      return "the certificate of \(endpoint) is not trusted: \(fault.text)\(advice)"
    }
    // With TLS 1.3, a server rejects a client certificate after the handshake.
    let text = "\(error)"
    if text.contains("alert"), ["certificate", "unknown ca", "decrypt error"].contains(where: { text.contains($0) }) {
      return settingsOfUpstream.certificate.map { "\(endpoint) rejects the certificate in \($0.chain): \(text)" }
        ?? "\(endpoint) requires a client certificate, and none is specified: \(text)"
    }
    return session == nil ? "TLS with \(endpoint) failed: \(text)" : "the connection to \(endpoint) failed: \(text)"
  }

  private func handle(_ event: HTTP2ClientSession.Event) {
    switch event {
    case .response(let stream, let response):
      hasAnswered = true
      if let request = sent.removeValue(forKey: stream) { finish(request, .response(response)) }
    case .reset(let stream, let code):
      guard let request = sent.removeValue(forKey: stream) else { return }
      let name = HTTP2ErrorCode.description(of: code)
      if code != HTTP2ErrorCode.refusedStream.rawValue {
        finish(request, .unknown("upstream reset the stream: \(name)"))
      } else if goAway != nil {
        finish(request, .excluded)
      } else {
        finish(request, .refused("upstream refused the stream: \(name)"))
      }
    case .excessiveResponse(let stream):
      if let request = sent.removeValue(forKey: stream) { finish(request, .unknown("the response is too large")) }
    case .goAway(_, let code, let debug):
      state = .draining
      let text = String(decoding: debug.prefix(200), as: UTF8.self)
      goAway = HTTP2ErrorCode.description(of: code) + (text.isEmpty ? "" : ": \(text)")
      problem = "\(settingsOfUpstream.peer) sent GOAWAY \(goAway ?? "")"
    case .settings(let streams, let listSize):
      if let streams { streamLimit = min(Int(streams), Self.maxStreams) }
      guard settings == nil else { return }
      settings = .init(maxConcurrentStreams: streams, maxHeaderListSize: listSize)
      if state == .connecting { state = .open }
    }
  }

  private func writeFrames(_ context: ChannelHandlerContext) {
    do {
      try session?.send(over: tls) { event in
        // nghttp2 resets the stream of a malformed response.
        if case .reset(let stream, let code) = event, let request = sent.removeValue(forKey: stream) {
          let name = HTTP2ErrorCode.description(of: code)
          finish(request, .unknown("the response is not valid HTTP/2: \(name)"))
        } else {
          handle(event)
        }
      }
      tls.flush(to: context)
    } catch {
      end("the connection to \(settingsOfUpstream.peer) failed: \(error)")
    }
  }
}

/// The exchange of bytes between an HTTP/2 session and its TLS connection, on an event loop.
extension HTTP2ClientSession {
  /// Processes everything that was received.
  ///
  /// - Returns: Whether the server has closed the connection.
  func receive(from tls: TLSConnection, _ handle: (Event) -> Void) throws -> Bool {
    let buffer = EventLoopResources.current.plainText
    while true {
      switch try tls.read(into: buffer) {
      case .bytes(let count):
        for event in try receive(UnsafeRawBufferPointer(rebasing: buffer[..<count])) { handle(event) }
      case .waiting: return false
      case .closed: return true
      }
    }
  }

  /// Encrypts everything that the session has to send.
  func send(over tls: TLSConnection, _ handle: (Event) -> Void) throws {
    let resources = EventLoopResources.current
    resources.frames.removeAll(keepingCapacity: true)
    appendOutput(to: &resources.frames)
    if !resources.frames.isEmpty { try resources.frames.withUnsafeBytes { try tls.write($0) } }
    for event in takeEvents() { handle(event) }
  }
}

extension TLSConnection {
  /// Writes the encrypted bytes to the channel.
  func flush(to context: ChannelHandlerContext) {
    takeOutput { bytes in
      context.writeAndFlush(NIOAny(context.channel.allocator.buffer(bytes: bytes)), promise: nil)
    }
  }
}
