import MockAPNS
import NIOCore
import NIOHTTP1
import NIOPosix

extension AdminClient {
  /// Sends a GET request and streams the response body.
  ///
  /// - Parameters:
  ///   - path: The percent-encoded path with its query.
  ///   - take: Receives each part of a successful response's body. The next part is read after it returns; `false` stops
  ///     reading.
  /// - Returns: Whether the response was read to its end.
  /// - Throws: `CommandFailure` with status `unreachable` if there is no complete response, or with the server's message if
  ///   it reports an error.
  @discardableResult
  func stream(_ path: String, _ take: ([UInt8]) throws -> Bool) async throws -> Bool {
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
    do {
      return try await channel.executeThenClose { inbound, outbound in
        try await outbound.write(.head(head(.GET, path)))
        try await outbound.write(.end(nil))
        return try await Self.read(inbound, take)
      }
    } catch let failure as CommandFailure {
      throw failure
    } catch {
      throw unreachable("connection lost: \(ConnectFailure(error).text)")
    }
  }

  private static func read(
    _ inbound: NIOAsyncChannelInboundStream<HTTPClientResponsePart>, _ take: ([UInt8]) throws -> Bool
  ) async throws -> Bool {
    var status = 0
    var problem: [UInt8] = []
    for try await part in inbound {
      switch part {
      case .head(let head): status = Int(head.status.code)
      case .body(let bytes) where status == 200:
        guard try take(Array(bytes.readableBytesView)) else { return false }
      case .body(let bytes): problem += bytes.readableBytesView
      case .end:
        if status != 200 { _ = try Answer(status: status, body: problem).succeeded() }
        return true
      }
    }
    throw ChannelError.eof
  }
}
