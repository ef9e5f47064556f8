package import APNSMockHTTPMessage
import APNSMockInbox
import NIOCore
import NIOPosix
import APNSMockTLSEngine

/// A client that sends pushes as a provider does, over one HTTP/2 connection with TLS. Used by `apns-mock send` and
/// the tests.
package struct PushClient: Sendable {
  /// The server's address.
  package var endpoint: MockServer.Endpoint
  /// The name that the server's certificate must contain; also sent as SNI unless it is an IP address.
  package var serverName: String
  /// PEM files of the CAs to trust.
  package var authorities: [String]
  /// The PEM files of a provider certificate, for pushes without a provider token; nil for none.
  package var certificate: (chain: String, key: String)?
  /// The time limit for all responses together.
  package var timeout = Duration.seconds(10)

  /// Creates a client of the server at `endpoint`.
  ///
  /// - Parameter serverName: The name in the server's certificate; nil for the endpoint's host.
  package init(
    endpoint: MockServer.Endpoint, serverName: String? = nil, authorities: [String],
    certificate: (chain: String, key: String)? = nil
  ) {
    self.endpoint = endpoint
    self.serverName = serverName ?? endpoint.host
    self.authorities = authorities
    self.certificate = certificate
  }

  /// A push request.
  package struct Push: Sendable {
    /// The device token, in hexadecimal digits.
    package var deviceToken: String
    /// The header fields such as `authorization` and `apns-topic`, with names in lower case.
    package var headers: [(String, String)]
    /// The request body.
    package var payload: [UInt8]

    /// Creates a push.
    package init(deviceToken: String, headers: [(String, String)], payload: [UInt8]) {
      self.deviceToken = deviceToken
      self.headers = headers
      self.payload = payload
    }
  }

  /// The outcome of one request.
  package enum Outcome: Sendable, Equatable {
    /// The server sent a response.
    case response(HTTPResponse)
    /// The server reset the stream with this HTTP/2 error code.
    case reset(errorCode: UInt32)
    /// The connection ended before a response, with the server's last GOAWAY if there was one.
    case disconnected(reason: String)
  }

  /// Sends all pushes over one connection, as many at once as the server allows, and returns their outcomes in
  /// order.
  ///
  /// - Throws: `TLSError` for unusable certificate files, `PushClientError` if no connection could be established.
  package func send(_ pushes: [Push]) async throws -> [Outcome] {
    let context = try TLSContext(clientTrusting: authorities, certificate: certificate)
    let probeResult: ProbeResult
    do {
      probeResult = try await connection(context, pushes)
    } catch {
      throw PushClientError(description: "cannot connect to \(endpoint): \(error)", wasConnected: false)
    }
    switch probeResult.termination {
    case .failed(let reason): throw PushClientError(description: reason)
    case .timedOut: throw PushClientError(description: "no response from \(endpoint) within \(timeout)")
    case .complete, .closed:
      return probeResult.outcomes.map { $0 ?? .disconnected(reason: probeResult.disconnectReason) }
    }
  }

  /// Sends one push, if any, and returns what was observed of the server. A server that is not trusted is inspected
  /// but receives no push.
  ///
  /// - Throws: `TLSError` for unusable certificate files, or NIO's error if no connection could be established.
  package func probe(sending push: Push?) async throws -> ProbeResult {
    let context = try TLSContext(
      clientTrusting: authorities, certificate: certificate, acceptsAnyCertificate: true)
    return try await connection(context, push.map { [$0] } ?? [])
  }

  private func connection(_ context: TLSContext, _ pushes: [Push]) async throws -> ProbeResult {
    let group = MultiThreadedEventLoopGroup.singleton
    let promise = group.any().makePromise(of: ProbeResult.self)
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
    let authority =
      endpoint.port == 443 ? serverName : MockServer.Endpoint(host: serverName, port: endpoint.port).description
    let pseudo = [
      (":method", "POST"), (":scheme", "https"), (":path", "/3/device/\(push.deviceToken)"), (":authority", authority),
    ]
    let agent = push.headers.contains { $0.0 == "user-agent" } ? [] : [("user-agent", Record.ownUserAgent)]
    return (HeaderList(pseudo + push.headers + agent), push.payload)
  }
}

/// The reason for which pushes could not be sent.
package struct PushClientError: Error, CustomStringConvertible, Sendable {
  /// The message for users.
  package let description: String
  /// Whether the failure happened after the TCP connection was established.
  package var wasConnected = true
}
