import MockAPNS
import NIOCore
import NIOPosix
import APNSMockTLSEngine
import APNSMockTestSupport

/// A server other than apns-mock that listens at the expected address and responds with given bytes, in plain text or
/// over TLS.
final class ForeignServer: Sendable {
  /// The behavior of the server.
  enum Behavior: Sendable {
    /// Sends these bytes when it has received something.
    case plain([UInt8])
    /// Accepts connections and sends nothing.
    case silent
    /// Closes accepted connections.
    case closing
    /// Completes the handshake with h2, and then sends these bytes.
    case tls(TLSContext, [UInt8])
  }

  /// The address at which the server listens.
  let endpoint: MockServer.Endpoint
  private let channel: any Channel

  /// Runs `body` while the server listens.
  static func run(_ manner: Behavior, _ body: (MockServer.Endpoint) async throws -> Void) async throws {
    let server = try await ForeignServer(manner)
    do {
      try await body(server.endpoint)
    } catch {
      try await server.channel.close()
      throw error
    }
    try await server.channel.close()
  }

  private init(_ manner: Behavior) async throws {
    channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          switch manner {
          case .closing: channel.close(promise: nil)
          case .silent: break
          case .plain(let bytes): try channel.pipeline.syncOperations.addHandler(PlainAnswer(bytes))
          case .tls(let context, let bytes):
            try channel.pipeline.syncOperations.addHandler(TLSAnswer(try TLSConnection(server: context), bytes))
          }
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    endpoint = MockServer.Endpoint(host: "127.0.0.1", port: channel.localAddress?.port ?? 0)
  }
}

private final class PlainAnswer: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
    context.close(promise: nil)
  }
}

private final class TLSAnswer: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let tls: TLSConnection
  private let bytes: [UInt8]
  private var isOpen = false

  init(_ tls: TLSConnection, _ bytes: [UInt8]) {
    self.tls = tls
    self.bytes = bytes
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    unwrapInboundIn(data).withUnsafeReadableBytes { tls.receive($0) }
    do {
      if !isOpen, try tls.handshake() == .done {
        isOpen = true
        try bytes.withUnsafeBytes { try tls.write($0) }
      }
    } catch {
      context.close(promise: nil)
    }
    tls.takeOutput { context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: $0)), promise: nil) }
  }
}

/// A certificate authority with one server certificate, as files in a folder of their own.
struct ServerCertificate {
  let folder: TemporaryFolder
  var authority: String { folder.path + "/ca.pem" }
  var chain: String { folder.path + "/server.pem" }
  var key: String { folder.path + "/server-key.pem" }

  /// Creates the files.
  ///
  /// - Parameters:
  ///   - names: The names in the certificate.
  ///   - permitted: The names that the authority may certify; nil for just `names`.
  ///   - days: The certificate's validity, in days from now.
  init(names: [String] = ["localhost"], permitted: [String]? = nil, days: ClosedRange<Int64> = -1...10) throws {
    let now = ServerClock().now
    let day: Int64 = 86_400_000
    var limits = NameConstraints()
    for name in (permitted ?? names).compactMap({ CertificateName($0) }) { limits.add(name) }
    let authority = try CertificateAuthority(
      commonName: "Foreign CA", permitted: limits, valid: (now - 100 * day)...(now + 100 * day))
    let issued = try authority.issueServer(
      names: names.compactMap { CertificateName($0) },
      valid: (now + days.lowerBound * day)...(now + days.upperBound * day))
    folder = try TemporaryFolder()
    _ = try folder.file("ca.pem", try authority.certificate.pem)
    _ = try folder.file("ca-key.pem", try authority.key.pem)
    _ = try folder.file("server.pem", try issued.certificate.pem)
    _ = try folder.file("server-key.pem", try issued.key.pem)
  }

  /// A TLS context for a server with this certificate.
  var context: TLSContext {
    get throws { try TLSContext(serverCertificateChain: chain, privateKey: key, clientAuthorities: []) }
  }
}
