import HTTPTypes
import MockAPNS
import NIOCore
import NIOHTTP1
import NIOPosix
import APNSMockNotation

/// A client of a running server's admin listener. Each request uses its own connection.
struct AdminClient: Sendable {
  /// The address of the admin listener.
  let endpoint: MockServer.Endpoint
  /// The admin token, if the server requires one.
  let token: String?
  /// How the server was found, for the error message if it does not respond.
  var origin = ""
  /// The time limit for a response.
  var timeout = Duration.seconds(30)

  /// A response of the server.
  struct Response: Sendable {
    let status: Int
    let body: [UInt8]
  }

  /// Sends a request and returns the response, whatever its status.
  ///
  /// - Parameters:
  ///   - path: The percent-encoded path with its query.
  ///   - type: The content type of the body.
  /// - Throws: `CommandFailure` with status `unreachable` if there is no response.
  func request(
    _ method: HTTPRequest.Method, _ path: String, body: [UInt8]? = nil, type: String = "application/json"
  ) async throws -> Response {
    do {
      let response = try await HTTP1Request(
        head(method, path), body: body, type: type, to: endpoint, timeout: TimeAmount(timeout)
      ).send()
      return Response(status: response.status, body: response.body)
    } catch HTTP1Request.Failure.timedOut {
      throw late(path)
    } catch {
      throw unreachable(ConnectFailure(error).text)
    }
  }

  /// Returns the head of a request.
  func head(_ method: HTTPRequest.Method, _ path: String) -> HTTPRequestHead {
    var head = HTTPRequestHead(version: .http1_1, method: HTTPMethod(rawValue: method.rawValue), uri: path)
    head.headers.add(name: "host", value: endpoint.description)
    head.headers.add(name: "connection", value: "close")
    if let token { head.headers.add(name: "authorization", value: "Bearer \(token)") }
    return head
  }

  /// Returns the failure for a server that accepts the connection and does not respond in time.
  private func late(_ path: String) -> CommandFailure {
    let advice = path.contains("?") ? "; if its inbox is large, select fewer pushes, such as since=-15m" : ""
    return CommandFailure(
      .unreachable,
      "no response from \(endpoint)\(origin) within \(DurationFormat.text(timeout)): the server is suspended or busy"
        + advice)
  }

  /// Returns the failure for a server that does not respond.
  func unreachable(_ reason: String) -> CommandFailure {
    CommandFailure(
      .unreachable,
      "no apns-mock responds on \(endpoint)\(origin): \(reason); start one with apns-mock serve, "
        + "or specify it with --port-file PATH or --admin HOST:PORT")
  }
}

extension AdminClient {
  /// Sends a GET request and streams the response body.
  ///
  /// - Parameters:
  ///   - path: The percent-encoded path with its query.
  ///   - receive: Receives each part of a successful response's body. The next part is read after it returns; `false`
  ///     stops reading.
  /// - Returns: Whether the response was read to its end.
  /// - Throws: `CommandFailure` with status `unreachable` if there is no complete response, or with the server's
  ///   message if it reports an error.
  @discardableResult
  func stream(_ path: String, _ receive: ([UInt8]) throws -> Bool) async throws -> Bool {
    let channel: NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>
    do {
      channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .connectTimeout(TimeAmount(timeout))
        .connect(host: endpoint.host, port: endpoint.port) { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHTTPClientHandlers()
            return try NIOAsyncChannel(wrappingChannelSynchronously: channel)
          }
        }
    } catch {
      throw unreachable(ConnectFailure(error).text)
    }
    var result: Bool?
    do {
      return try await channel.executeThenClose { inbound, outbound in
        // At once: a request without a body is complete with its head, and the server may respond to it and close the
        // connection before a second write.
        try await outbound.write(contentsOf: [.head(head(.get, path)), .end(nil)])
        let isWhole = try await Self.read(inbound, receive)
        result = isWhole
        return isWhole
      }
    } catch let failure as CommandFailure {
      throw failure
    } catch {
      // Closing fails if the server closed the connection after the end of the response.
      if let result { return result }
      throw unreachable("connection lost: \(ConnectFailure(error).text)")
    }
  }

  private static func read(
    _ inbound: NIOAsyncChannelInboundStream<HTTPClientResponsePart>, _ receive: ([UInt8]) throws -> Bool
  ) async throws -> Bool {
    var status = 0
    var problem: [UInt8] = []
    for try await part in inbound {
      switch part {
      case .head(let head): status = Int(head.status.code)
      case .body(let bytes) where status == 200:
        guard try receive(Array(bytes.readableBytesView)) else { return false }
      case .body(let bytes): problem += bytes.readableBytesView
      case .end:
        if status != 200 { _ = try Response(status: status, body: problem).succeeded() }
        return true
      }
    }
    throw ChannelError.eof
  }
}

/// The reason why a TCP connection failed.
struct ConnectFailure: Sendable {
  /// The kinds of failures that need different repairs.
  enum Kind: Sendable {
    /// The host is reachable, but nothing listens on the port.
    case refused
    /// The host is unreachable.
    case noRoute
    case other
  }

  let kind: Kind
  /// The description for people.
  let text: String

  /// Creates a failure from an error of NIO's bootstrap.
  init(_ error: any Error) {
    guard let error = error as? NIOConnectionError else {
      (kind, text) = Self.describe(error)
      return
    }
    // If several addresses failed, report the first one's error.
    (kind, text) =
      error.connectionErrors.first.map { Self.describe($0.error) } ?? (.other, "unknown host \(error.host)")
  }

  private static func describe(_ error: any Error) -> (Kind, String) {
    switch error {
    case let error as IOError where error.errnoCode == ECONNREFUSED: (.refused, error.reason)
    case let error as IOError where [ENETUNREACH, EHOSTUNREACH, ETIMEDOUT, EADDRNOTAVAIL].contains(error.errnoCode):
      (.noRoute, error.reason)
    case ChannelError.connectTimeout: (.noRoute, "timed out while connecting")
    default: (.other, "\(error)")
    }
  }
}
