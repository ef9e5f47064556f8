import HTTP2Session
public import HTTPMessage
import Logging
import NIOCore
import NIOPosix
import TLSEngine

/// Sends pushes as a provider does: TLS, HTTP/2, one connection. What `apns-mock send` and the tests use.
public struct PushClient: Sendable {
  /// Where the server listens.
  public var endpoint: Endpoint
  /// The name that the server's certificate must bear; also sent as SNI unless it is an IP address.
  public var serverName: String
  /// PEM files of the CAs to trust.
  public var authorities: [String]
  /// A provider certificate, for a push without a provider token.
  public var certificate: (chain: String, key: String)?
  /// How long all answers together may take.
  public var timeout = Duration.seconds(10)

  /// A client of the server at `endpoint`.
  ///
  /// - Parameter serverName: nil for the endpoint's host.
  public init(
    endpoint: Endpoint, serverName: String? = nil, authorities: [String],
    certificate: (chain: String, key: String)? = nil
  ) {
    self.endpoint = endpoint
    self.serverName = serverName ?? endpoint.host
    self.authorities = authorities
    self.certificate = certificate
  }

  /// One request to make.
  public struct Push: Sendable {
    /// The device token, in hexadecimal digits.
    public var deviceToken: String
    /// `authorization`, `apns-topic` and the others, names in lower case.
    public var headers: [(String, String)]
    /// The body.
    public var payload: [UInt8]

    /// A push from parts.
    public init(deviceToken: String, headers: [(String, String)], payload: [UInt8]) {
      self.deviceToken = deviceToken
      self.headers = headers
      self.payload = payload
    }
  }

  /// What became of one request.
  public enum Outcome: Sendable, Equatable {
    /// The server answered.
    case answered(HTTPResponse)
    /// The server ended the stream with this HTTP/2 error code.
    case reset(errorCode: UInt32)
    /// The connection ended first; what the server said last, if anything.
    case disconnected(reason: String)
  }

  /// Sends all pushes over one connection, as many at once as the server allows, and gives their outcomes in order.
  ///
  /// - Throws: `PushClientError` if no connection could be made.
  public func send(_ pushes: [Push]) async throws -> [Outcome] {
    let context = try TLSContext(clientTrusting: authorities, certificate: certificate)
    let group = MultiThreadedEventLoopGroup.singleton
    let promise = group.any().makePromise(of: [Outcome].self)
    let requests = pushes.map(request)
    let channel: any Channel
    do {
      channel = try await ClientBootstrap(group: group)
        .connectTimeout(TimeAmount(timeout))
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(
              PushClientHandler(
                tls: try TLSConnection(client: context, serverName: serverName), requests: requests, promise: promise))
          }
        }
        .connect(host: endpoint.host, port: endpoint.port).get()
    } catch {
      promise.fail(error)
      throw PushClientError(description: "cannot connect to \(endpoint): \(error)")
    }
    let limit = channel.eventLoop.scheduleTask(in: TimeAmount(timeout)) {
      promise.fail(PushClientError(description: "no answer from \(endpoint) within \(timeout)"))
      channel.close(promise: nil)
    }
    defer {
      limit.cancel()
      channel.close(promise: nil)
    }
    return try await promise.futureResult.get()
  }

  private func request(_ push: Push) -> (HeaderList, [UInt8]) {
    let authority = endpoint.port == 443 ? serverName : Endpoint(host: serverName, port: endpoint.port).description
    let pseudo = [
      (":method", "POST"), (":scheme", "https"), (":path", "/3/device/\(push.deviceToken)"), (":authority", authority),
    ]
    return (HeaderList(pseudo + push.headers), push.payload)
  }
}

/// Why a push could not be sent.
public struct PushClientError: Error, CustomStringConvertible, Sendable {
  /// For people.
  public let description: String
}

/// The client's end of the connection, on its event loop.
private final class PushClientHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let tls: TLSConnection
  private let requests: [(HeaderList, [UInt8])]
  private let promise: EventLoopPromise<[PushClient.Outcome]>
  private var session: HTTP2ClientSession?
  private var places: [Int32: Int] = [:]
  private var outcomes: [PushClient.Outcome?]
  private var lastWords = "the server closed the connection"

  init(
    tls: TLSConnection, requests: [(HeaderList, [UInt8])], promise: EventLoopPromise<[PushClient.Outcome]>
  ) {
    self.tls = tls
    self.requests = requests
    self.promise = promise
    outcomes = Array(repeating: nil, count: requests.count)
  }

  func channelActive(context: ChannelHandlerContext) { process(context) }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    unwrapInboundIn(data).withUnsafeReadableBytes { tls.receive($0) }
    process(context)
  }

  func channelInactive(context: ChannelHandlerContext) {
    promise.succeed(outcomes.map { $0 ?? .disconnected(reason: lastWords) })
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    lastWords = "\(error)"
    context.close(promise: nil)
  }

  private func process(_ context: ChannelHandlerContext) {
    do {
      if session == nil {
        guard try tls.handshake() == .done else { return write(context) }
        guard tls.negotiatedHTTP2 else {
          throw PushClientError(description: "the server does not speak HTTP/2 (no h2 by ALPN)")
        }
        let session = try HTTP2ClientSession()
        self.session = session
        for (place, request) in requests.enumerated() {
          places[try session.request(headers: request.0, body: request.1)] = place
        }
      }
      try exchange(context)
    } catch {
      write(context)
      promise.fail(PushClientError(description: "\(error)"))
      context.close(promise: nil)
    }
  }

  private func exchange(_ context: ChannelHandlerContext) throws {
    guard let session else { return }
    let scratch = LoopScratch.current
    reading: while true {
      switch try tls.read(into: scratch.input) {
      case .bytes(let count):
        for event in try session.receive(UnsafeRawBufferPointer(rebasing: scratch.input[..<count])) { note(event) }
      case .waiting: break reading
      case .closed:
        context.close(promise: nil)
        return
      }
    }
    var frames: [UInt8] = []
    session.drain(into: &frames)
    try frames.withUnsafeBytes { try tls.write($0) }
    write(context)
    if !outcomes.contains(where: { $0 == nil }) { promise.succeed(outcomes.compactMap { $0 }) }
  }

  private func note(_ event: HTTP2ClientSession.Event) {
    switch event {
    case .response(let stream, let response):
      if let place = places[stream] { outcomes[place] = .answered(response) }
    case .reset(let stream, let code):
      if let place = places[stream] { outcomes[place] = .reset(errorCode: code) }
    case .goAway(_, let code, let debug):
      lastWords = "GOAWAY code \(code) \(String(decoding: debug, as: UTF8.self))"
    case .settings: break
    }
  }

  private func write(_ context: ChannelHandlerContext) {
    tls.takeOutput { bytes in
      context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)), promise: nil)
    }
  }
}
