import Hummingbird
import Logging
import MockAPNS
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import Testing

@testable import APNSMockAdminAPI

/// Connections at the limit of the admin listener: all but a quarter are regular ones, the others are in reserve.
@Suite struct AdmissionTests {
  private let connections = AdminConnections(limit: 4, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })

  private func connect() throws -> EmbeddedChannel {
    let health = HealthRoutes(phase: { .ready }, storeProblem: { nil })
    let isRegular = connections.open()
    let channel = EmbeddedChannel(handlers: [
      RequestTimeoutHandler(timeout: .seconds(60), connections: connections, isRegular: isRegular),
      AdmissionHandler(isRegular: isRegular, health: health),
    ])
    channel.closeFuture.whenComplete { [connections] _ in connections.close(channel, isRegular: isRegular) }
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    return channel
  }

  private func send(_ path: String, _ method: HTTPRequest.Method = .get, on channel: EmbeddedChannel) throws {
    let head = HTTPRequest(method: method, scheme: "http", authority: "localhost", path: path)
    try channel.writeInbound(HTTPRequestPart.head(head))
    try channel.writeInbound(HTTPRequestPart.end(nil))
  }

  /// Returns the status that the handler itself has answered with; nil if it has passed the request on.
  private func status(on channel: EmbeddedChannel) throws -> Int? {
    guard case .head(let head)? = try channel.readOutbound(as: HTTPResponsePart.self) else { return nil }
    while try channel.readOutbound(as: HTTPResponsePart.self) != nil {}
    return head.status.code
  }

  @Test(
    arguments: [(String, HTTPRequest.Method, Int?)]([
      ("/livez", HTTPRequest.Method.get, 200), ("/readyz", .head, 200), ("//livez/", .get, 200),
      ("/livez?x", .get, 200),
      ("/livez", .post, nil), ("/LIVEZ", .get, nil), ("/metrics", .get, nil), ("/api/v1/pushes", .get, nil),
    ]))
  func healthChecksAreAnsweredAtOnce(path: String, method: HTTPRequest.Method, expected: Int?) throws {
    let channel = try connect()
    for _ in 0..<2 where channel.isActive {
      try send(path, method, on: channel)
      #expect(try status(on: channel) == expected)
      if expected == nil { break }
      #expect(try channel.readInbound(as: HTTPRequestPart.self) == nil)
    }
    _ = try channel.finish()
  }

  /// Responses must be in the order of requests.
  @Test func aHealthCheckWaitsForAnEarlierResponse() throws {
    let channel = try connect()
    try send("/api/v1/pushes", on: channel)
    try send("/livez", on: channel)
    #expect(try status(on: channel) == nil)
    for _ in 0..<4 { #expect(try channel.readInbound(as: HTTPRequestPart.self) != nil) }
    _ = try channel.finish()
  }

  @Test(
    arguments: [(String, Int?)]([
      ("/livez", 200), ("/readyz", 200), ("/api/v1/pushes", 503), ("/", 503), ("/metrics", nil),
    ]))
  func aConnectionOfTheReserveServesHealthChecksOnly(path: String, expected: Int?) throws {
    let busy = try (0..<3).map { _ in try connect() }
    for channel in busy { try send("/api/v1/pushes/wait", on: channel) }
    let channel = try connect()
    try send(path, on: channel)
    #expect(try status(on: channel) == expected)
    #expect((try channel.readInbound(as: HTTPRequestPart.self) != nil) == (expected == nil))
    channel.embeddedEventLoop.advanceTime(by: .seconds(5))
    #expect(!channel.isActive)
    // A regular connection is available again after one is closed.
    _ = try busy[0].finish()
    let next = try connect()
    next.embeddedEventLoop.advanceTime(by: .seconds(2))
    #expect(next.isActive)
    for channel in [next, busy[1], busy[2]] { _ = try channel.finish() }
  }

  @Test func aSilentConnectionOfTheReserveIsClosedAfterASecond() throws {
    let busy = try (0..<3).map { _ in try connect() }
    for channel in busy { try send("/api/v1/pushes/wait", on: channel) }
    let channel = try connect()
    channel.embeddedEventLoop.advanceTime(by: .milliseconds(900))
    #expect(channel.isActive)
    channel.embeddedEventLoop.advanceTime(by: .milliseconds(100))
    #expect(!channel.isActive)
    for channel in busy { _ = try channel.finish() }
  }

  /// A connection of the reserve that was answered makes room in the reserve, and none among the regular connections.
  @Test func theReserveDoesNotFillWithAnsweredConnections() throws {
    let connections = AdminConnections(limit: 16, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    for _ in 0..<12 { #expect(connections.open()) }
    let answered = (0..<3).map { _ in EmbeddedChannel(handler: CloseCounter()) }
    for channel in answered {
      #expect(!connections.open())
      connections.addIdle(channel, isRegular: false)
    }
    #expect(try answered.map(CloseCounter.count) == [1, 0, 0])
    connections.close(nil, isRegular: false)
    #expect(!connections.open())
    #expect(try answered.map(CloseCounter.count) == [1, 0, 0], "the new one is not answered yet")
  }

  /// Counts how often a connection was asked to close.
  private final class CloseCounter: ChannelInboundHandler {
    typealias InboundIn = Never
    var count = 0

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
      if event is AdminConnections.CloseIfIdle { count += 1 }
    }

    static func count(on channel: EmbeddedChannel) throws -> Int {
      try channel.pipeline.syncOperations.handler(type: CloseCounter.self).count
    }
  }

  @Test func theLongestIdleConnectionMakesRoom() throws {
    let idle = try (0..<3).map { _ in try connect() }
    for channel in idle.reversed() {
      try send("/livez", on: channel)
      channel.embeddedEventLoop.run()
      #expect(try status(on: channel) == 200)
    }
    let channel = try connect()
    try send("/api/v1/pushes", on: channel)
    #expect(try status(on: channel) == nil)
    #expect(idle.map(\.isActive) == [true, true, false])
    for channel in idle.prefix(2) + [channel] { _ = try channel.finish() }
  }
}
