import MockAPNS
import NIOCore
import NIOHTTP1
import NIOPosix

extension AdminClient {
  /// Asks for something long, and gives it as it comes.
  ///
  /// - Parameters:
  ///   - path: with its query, percent-encoded.
  ///   - take: gets the parts of a good answer's body; nothing more is read meanwhile, and nothing once it says false.
  /// - Returns: whether the answer came to its end.
  /// - Throws: `CommandFailure` with status `unreachable` if there is no answer, or only the beginning of one; with the
  ///   server's words if it cannot do what it was asked.
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
      throw unreachable("the connection was lost: \(ConnectFailure(error).text)")
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
