import APNSMockHTTP2Session
import APNSMockHTTPMessage
import NIOCore
import APNSMockTLSEngine

/// Channel handler of a `PushClient` connection. Confined to the connection's event loop.
final class PushClientHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// Pipeline event: the client's timeout has expired.
  struct TimeUp: Sendable {}

  private let tls: TLSConnection
  private let serverName: String
  private let requests: [(HeaderList, [UInt8])]
  private let promise: EventLoopPromise<ProbeResult>
  private var session: HTTP2ClientSession?
  private var indices: [Int32: Int] = [:]
  private var probeResult: ProbeResult

  /// - Parameter promise: Receives the result when every request has its outcome or the connection has ended.
  init(
    tls: TLSConnection, serverName: String, requests: [(HeaderList, [UInt8])],
    promise: EventLoopPromise<ProbeResult>
  ) {
    self.tls = tls
    self.serverName = serverName
    self.requests = requests
    self.promise = promise
    probeResult = ProbeResult(pushes: requests.count)
  }

  func channelActive(context: ChannelHandlerContext) { handleReceivedBytes(context) }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let buffer = unwrapInboundIn(data)
    if probeResult.firstBytes.isEmpty { probeResult.firstBytes = Array(buffer.readableBytesView.prefix(64)) }
    buffer.withUnsafeReadableBytes { tls.receive($0) }
    handleReceivedBytes(context)
  }

  func channelInactive(context: ChannelHandlerContext) { finish(.closed, context) }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // A reset of an established connection counts as a close: which of the two is noticed first is arbitrary.
    finish(error is IOError && session != nil ? .closed : .failed("\(error)"), context)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard event is TimeUp else { return context.fireUserInboundEventTriggered(event) }
    finish(.timedOut, context)
  }

  private func handleReceivedBytes(_ context: ChannelHandlerContext) {
    do {
      if session == nil {
        defer { recordCertificate() }
        guard try tls.handshake() == .done else { return tls.flush(to: context) }
        probeResult.tls = tls.protocolVersion
      }
      if session == nil { try open() }
      try exchange(context)
    } catch {
      tls.flush(to: context)
      finish(.failed("\(error)"), context)
    }
  }

  private func recordCertificate() {
    guard probeResult.certificate == nil, let certificate = tls.peerCertificate else { return }
    probeResult.certificate = certificate
    probeResult.certificateFault = tls.peerCertificateFault
    probeResult.certificateMatchesName = tls.peerCertificateContains(serverName)
    probeResult.negotiatedProtocol = tls.negotiatedProtocol
  }

  private func open() throws {
    guard tls.negotiatedHTTP2 else {
      throw PushClientError(description: "the server does not speak HTTP/2 (no h2 by ALPN)")
    }
    let session = try HTTP2ClientSession()
    self.session = session
    // Do not send the provider token to an untrusted server.
    guard probeResult.isTrusted else { return }
    for (index, request) in requests.enumerated() {
      indices[try session.request(headers: request.0, body: request.1)] = index
    }
  }

  private func exchange(_ context: ChannelHandlerContext) throws {
    guard let session else { return }
    if try session.receive(from: tls, { handle($0) }) { return finish(.closed, context) }
    try session.send(over: tls) { handle($0) }
    tls.flush(to: context)
    let isAllKnown = probeResult.isTrusted ? !probeResult.outcomes.contains { $0 == nil } : true
    if isAllKnown, probeResult.settings != nil { finish(.complete, context) }
  }

  private func handle(_ event: HTTP2ClientSession.Event) {
    switch event {
    case .response(let stream, let response):
      if let index = indices[stream] { probeResult.outcomes[index] = .response(response) }
    case .reset(let stream, let code):
      guard let index = indices[stream] else { return }
      // nghttp2 resets streams that a GOAWAY excluded; the GOAWAY describes the cause better.
      probeResult.outcomes[index] =
        code == HTTP2ErrorCode.refusedStream.rawValue && probeResult.goAway != nil
        ? .disconnected(reason: probeResult.disconnectReason) : .reset(errorCode: code)
    case .excessiveResponse(let stream):
      if let index = indices[stream] { probeResult.outcomes[index] = .reset(errorCode: HTTP2ErrorCode.cancel.rawValue) }
    case .goAway(_, let code, let debug):
      probeResult.goAway = .init(errorCode: code, text: String(decoding: debug, as: UTF8.self))
    case .settings(let streams, let listSize):
      guard probeResult.settings == nil else { return }
      probeResult.settings = .init(maxConcurrentStreams: streams, maxHeaderListSize: listSize)
    }
  }

  private func finish(_ termination: ProbeResult.Termination, _ context: ChannelHandlerContext) {
    probeResult.termination = termination
    // Later calls have no effect: the promise is already completed.
    promise.succeed(probeResult)
    context.close(promise: nil)
  }
}
