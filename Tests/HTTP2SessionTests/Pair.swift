import APNSMockHTTP2Session
import APNSMockHTTPMessage

/// A server session and a client session connected in memory.
final class Pair {
  let server: HTTP2ServerSession
  let client: HTTP2ClientSession
  var clientEvents: [HTTP2ClientSession.Event] = []
  /// All bytes the server sent.
  var fromServer: [UInt8] = []

  init(
    maxConcurrentStreams: UInt32 = 1000, settings: HTTP2Settings = HTTP2Settings(),
    pool: RequestStreamPool = RequestStreamPool()
  ) throws {
    server = try HTTP2ServerSession(maxConcurrentStreams: maxConcurrentStreams, settings: settings, pool: pool)
    client = try HTTP2ClientSession()
  }

  /// Carries bytes in both directions until neither side sends any; `serve` receives each server event.
  func pump(_ serve: (HTTP2ServerSession.Event) -> Void = { _ in }) throws {
    var moved = true
    while moved {
      var up: [UInt8] = []
      client.appendOutput(to: &up)
      try up.withUnsafeBytes { try server.receive($0) }
      while let event = server.nextEvent() { serve(event) }
      var down: [UInt8] = []
      server.appendOutput(to: &down)
      fromServer += down
      clientEvents += try down.withUnsafeBytes { try client.receive($0) }
      moved = !up.isEmpty || !down.isEmpty
    }
  }

  /// Sends a push as providers do.
  @discardableResult
  func push(_ extra: [(String, String)] = [], body: [UInt8] = Array(#"{"aps":{}}"#.utf8)) throws -> Int32 {
    try client.request(
      headers: HeaderList(
        [(":method", "POST"), (":scheme", "https"), (":path", "/3/device/00"), (":authority", "localhost")] + extra),
      body: body)
  }
}
