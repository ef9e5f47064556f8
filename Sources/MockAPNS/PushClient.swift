import HTTP2Session
import Inbox
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
  /// - Throws: `TLSError` for files that cannot be used, `PushClientError` if no connection could be made.
  public func send(_ pushes: [Push]) async throws -> [Outcome] {
    let context = try TLSContext(clientTrusting: authorities, certificate: certificate)
    let sighting: ServerSighting
    do {
      sighting = try await connection(context, pushes)
    } catch {
      throw PushClientError(description: "cannot connect to \(endpoint): \(error)", wasConnected: false)
    }
    switch sighting.ending {
    case .failed(let reason): throw PushClientError(description: reason)
    case .timedOut: throw PushClientError(description: "no answer from \(endpoint) within \(timeout)")
    case .complete, .closed: return sighting.outcomes.map { $0 ?? .disconnected(reason: sighting.lastWords) }
    }
  }

  /// Tries one push and says what was seen of the server, also of one that is not trusted: it is then looked at and sent
  /// nothing.
  ///
  /// - Throws: `TLSError` for files that cannot be used, or NIO's error if no connection could be made.
  package func look(sending push: Push?) async throws -> ServerSighting {
    let context = try TLSContext(
      clientTrusting: authorities, certificate: certificate, takesAnyCertificate: true)
    return try await connection(context, push.map { [$0] } ?? [])
  }

  private func connection(_ context: TLSContext, _ pushes: [Push]) async throws -> ServerSighting {
    let group = MultiThreadedEventLoopGroup.singleton
    let promise = group.any().makePromise(of: ServerSighting.self)
    let requests = pushes.map(request)
    let channel: any Channel
    do {
      channel = try await ClientBootstrap(group: group)
        .connectTimeout(TimeAmount(timeout))
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(
              PushClientHandler(
                tls: try TLSConnection(client: context, serverName: serverName), serverName: serverName,
                requests: requests, promise: promise))
          }
        }
        .connect(host: endpoint.host, port: endpoint.port).get()
    } catch {
      promise.fail(error)
      throw error
    }
    let limit = channel.eventLoop.scheduleTask(in: TimeAmount(timeout)) {
      channel.pipeline.fireUserInboundEventTriggered(PushClientHandler.TimeUp())
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
    let agent = push.headers.contains { $0.0 == "user-agent" } ? [] : [("user-agent", Record.ownUserAgent)]
    return (HeaderList(pseudo + push.headers + agent), push.payload)
  }
}

/// Why a push could not be sent.
public struct PushClientError: Error, CustomStringConvertible, Sendable {
  /// For people.
  public let description: String
  /// Whether there was a TCP connection, and it came to nothing.
  public var wasConnected = true
}
