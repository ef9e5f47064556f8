package import APNSMockRules
import APNSMockInbox
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import APNSMockTLSEngine

/// The kinds of listeners for providers: what a connection begins with.
package enum ListenerKind: Sendable {
  /// TLS, as with APNs.
  case tls
  /// A PROXY protocol header, then TLS.
  case proxyProtocol
  /// HTTP without TLS.
  case cleartext
  /// An HTTP CONNECT request for one of Apple's hosts, then TLS.
  case connectProxy
  /// TLS, as with Apple's hosts for channel management: broadcast and channel requests only.
  case management

  /// Whether it is one of the APNs listeners, which `--apns` sets.
  package var isAPNs: Bool { self == .tls || self == .proxyProtocol }

  /// The users of the listener, for messages.
  var purpose: String {
    switch self {
    case .tls, .proxyProtocol, .cleartext: "providers"
    case .connectProxy: "the CONNECT proxy"
    case .management: "channel management"
    }
  }

  /// The command-line flag that sets the address.
  var flag: String {
    switch self {
    case .tls, .proxyProtocol: "--apns"
    case .cleartext: "--apns-plain"
    case .connectProxy: "--proxy"
    case .management: "--manage"
    }
  }
}

/// A listener for providers with the address it is bound to.
package struct BoundListener: Sendable {
  /// What a connection begins with.
  package let kind: ListenerKind
  /// The address, with the port actually bound.
  package let endpoint: MockServer.Endpoint
  /// The environment of its connections.
  package let environment: PushEnvironment
}

/// The `server` header field with which a listener without TLS responds to an invalid request, so that
/// `apns-mock doctor` recognizes the listener.
package enum ListenerName {
  package static let cleartext = "apns-mock plain"
  package static let proxy = "apns-mock proxy"
}

/// A listener for providers: accepts connections and builds their pipelines.
struct Listener: Sendable {
  /// The index of the listener in records and rules, from 0.
  let index: Int
  let kind: ListenerKind
  /// The environment that the listener mocks.
  let environment: PushEnvironment
  let state: ServerState
  let logger: Logger

  /// Starts listening.
  ///
  /// - Throws: `ListenError`.
  func listen(on endpoint: MockServer.Endpoint, group: MultiThreadedEventLoopGroup) async throws -> any Channel {
    do {
      return try await ServerBootstrap(group: group)
        .serverChannelOption(ChannelOptions.backlog, value: 1024)
        .serverChannelOption(ChannelOptions.socketOption(.so_reuseaddr), value: 1)
        .serverChannelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(AcceptErrorHandler(logger: logger))
          }
        }
        .childChannelInitializer { channel in channel.eventLoop.makeCompletedFuture { try admit(channel) } }
        .bind(host: endpoint.host, port: endpoint.port).get()
    } catch {
      throw ListenError(endpoint: endpoint, purpose: kind.purpose, flag: kind.flag, cause: error)
    }
  }

  /// Configures an accepted connection. When this fails, NIO closes the connection without reporting the error, so
  /// it is logged here.
  private func admit(_ channel: any Channel) throws {
    let log = connectionLog(
      state.nextConnectionNumber(), client: channel.remoteAddress.flatMap(MockServer.Endpoint.init(_:)))
    do {
      // Set here because the bootstrap sets each option through a future.
      let options = channel.syncOptions
      try options?.setOption(.tcpOption(.tcp_nodelay), value: 1)
      // A single read into a small buffer: the handler reads the rest into a buffer that the event loop's
      // connections share.
      try options?.setOption(
        .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: ConnectionHandler.firstReadSize))
      try options?.setOption(.maxMessagesPerRead, value: 1)
      try state.connections.add(channel, log: log)
      try channel.pipeline.syncOperations.addHandlers(try handlers(log))
    } catch {
      if state.connections.shouldLogRefusal() {
        logger.warning("\(log.client): not accepted, \(error) (logged at most once a minute)")
      }
      throw error
    }
  }

  private func handlers(_ log: ConnectionLog) throws -> [any ChannelHandler] {
    let preamble = PreambleContext(listener: self, log: log)
    switch kind {
    case .tls, .management: return [try secureHandler(log)]
    case .proxyProtocol: return [PreambleGuard(preamble), ProxyProtocolHandler(preamble)]
    case .cleartext: return [PreambleGuard(preamble), CleartextProtocolDetector(preamble)]
    case .connectProxy:
      let decoder = ByteToMessageHandler(
        HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: .provider))
      return [PreambleGuard(preamble), decoder, ConnectProxyHandler(preamble, decoder: decoder)]
    }
  }

  /// Returns the handler of a connection with TLS.
  func secureHandler(_ log: ConnectionLog) throws -> ConnectionHandler {
    ConnectionHandler(log: log, transport: .tls(try TLSConnection(server: state.chain.context)), listener: self)
  }

  /// Returns the handler of a connection without TLS.
  func cleartextHandler(_ log: ConnectionLog, http: ConnectionFacts.HTTPVersion) -> ConnectionHandler {
    ConnectionHandler(log: log, transport: .cleartext(CleartextBuffers()), http: http, listener: self)
  }

  func connectionLog(_ number: UInt64, client: MockServer.Endpoint?) -> ConnectionLog {
    ConnectionLog(number: number, listener: index, client: client, events: state.events)
  }
}

extension NIOHTTPDecoderLimitConfiguration {
  /// The limits of HTTP/1.1 request heads. They exceed the limits of APNs, so that the APNs rules respond with 431.
  static var provider: NIOHTTPDecoderLimitConfiguration {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderFieldSize = 16 << 10
    limits.maxHeaderListSize = 32 << 10
    limits.maxHeaderFieldCount = 100
    return limits
  }
}
