import MockAPNS
import NIOCore
import NIOHTTP1
import NIOPosix

/// Speaks to the admin listener of a running server: one request, one connection.
struct AdminClient: Sendable {
  /// Where the server's inbox is read.
  let endpoint: Endpoint
  /// The admin token, if the server wants one.
  let token: String?
  /// How the server was found, for the message when it does not answer.
  var origin = ""
  /// How long an answer may take.
  var timeout = Duration.seconds(30)

  /// What the server said.
  struct Answer: Sendable {
    let status: Int
    let body: [UInt8]
  }

  /// Makes a request and gives its answer, whatever its status.
  ///
  /// - Parameters:
  ///   - path: with its query, percent-encoded.
  ///   - type: the content type of the body.
  /// - Throws: `CommandFailure` with status `unreachable` if there is no answer.
  func request(
    _ method: HTTPMethod, _ path: String, body: [UInt8]? = nil, type: String = "application/json"
  ) async throws -> Answer {
    let group = MultiThreadedEventLoopGroup.singleton
    let promise = group.any().makePromise(of: Answer.self)
    do {
      let channel = try await ClientBootstrap(group: group)
        .connectTimeout(TimeAmount(timeout))
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHTTPClientHandlers()
            try channel.pipeline.syncOperations.addHandler(AnswerCollector(promise: promise))
          }
        }
        .connect(host: endpoint.host, port: endpoint.port).get()
      let limit = channel.eventLoop.scheduleTask(in: TimeAmount(timeout)) {
        promise.fail(NoAnswer(description: "no answer within \(timeout)"))
      }
      defer {
        limit.cancel()
        channel.close(promise: nil)
      }
      var head = head(method, path)
      if let body {
        head.headers.add(name: "content-type", value: type)
        head.headers.add(name: "content-length", value: String(body.count))
      }
      channel.write(HTTPClientRequestPart.head(head), promise: nil)
      if let body { channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil) }
      channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
      return try await promise.futureResult.get()
    } catch {
      promise.fail(error)
      throw unreachable(ConnectFailure(error).text)
    }
  }

  /// The beginning of a request.
  func head(_ method: HTTPMethod, _ path: String) -> HTTPRequestHead {
    var head = HTTPRequestHead(version: .http1_1, method: method, uri: path)
    head.headers.add(name: "host", value: endpoint.description)
    head.headers.add(name: "connection", value: "close")
    if let token { head.headers.add(name: "authorization", value: "Bearer \(token)") }
    return head
  }

  /// The failure of whoever finds no server.
  func unreachable(_ reason: String) -> CommandFailure {
    CommandFailure(
      .unreachable,
      "no apns-mock answers on \(endpoint)\(origin): \(reason); start one with apns-mock serve, "
        + "or say where it is with --port-file PATH or --admin HOST:PORT")
  }
}

/// Why no whole answer came.
private struct NoAnswer: Error, CustomStringConvertible {
  let description: String
}

/// Puts the parts of one answer together.
private final class AnswerCollector: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart

  private let promise: EventLoopPromise<AdminClient.Answer>
  private var status = 0
  private var body: [UInt8] = []

  init(promise: EventLoopPromise<AdminClient.Answer>) { self.promise = promise }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): status = Int(head.status.code)
    case .body(let part): body.append(contentsOf: part.readableBytesView)
    case .end: promise.succeed(AdminClient.Answer(status: status, body: body))
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    promise.fail(error is HTTPParserError ? NoAnswer(description: "what answers there does not speak HTTP") : error)
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    promise.fail(NoAnswer(description: "the connection was closed before the answer was whole"))
  }
}
