import Dispatch
import Hummingbird
import APNSMockInbox
import HTTPTypes
import HummingbirdCore
import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOEmbedded
import APNSMockNotation

@testable import APNSMockAdminAPI
@testable import MockAPNS

/// Fuzzes requests of the admin API, from request to complete response, without a socket. An input has the method
/// and path on the first line, the content type on the second, then the body; a line `%%` separates it from the
/// next request to the same server.
struct AdminTarget: FuzzTarget {
  private let server: FuzzServer
  private let channel = NIOAsyncTestingChannel()

  init() throws {
    server = try FuzzServer()
    // Requests of a client that has disconnected are dropped.
    try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
  }

  func run(_ bytes: UnsafeRawBufferPointer) {
    let requests = Self.requests(Array(bytes))
    guard !requests.isEmpty else { return }
    let state = server.state()
    let routes = AdminRoutes(state: state, version: "1.0.0")
    let context = AdminContext(source: ApplicationRequestContextSource(channel: channel, logger: server.logger))
    let done = DispatchSemaphore(value: 0)
    let work = Task {
      let responder = routes.responder()
      for request in requests { await Self.check(request, try? responder.respond(to: request, context: context)) }
      // A rule with a ttl would keep the server in memory.
      state.faults.removeRules()
      state.faults.useHealthy()
      done.signal()
    }
    // Waiting requests may wait for minutes. No pushes arrive, so cancel them.
    if done.wait(timeout: .now() + .seconds(2)) == .timedOut {
      state.inbox.endWaiting()
      work.cancel()
      done.wait()
    }
  }

  private static func requests(_ bytes: [UInt8]) -> [Request] {
    let parts = String(decoding: bytes, as: UTF8.self).split(separator: "\n%%\n")
    return parts.prefix(8).compactMap { part in
      let lines = part.split(separator: "\n", maxSplits: 2, omittingEmptySubsequences: false)
      let words = lines[0].split(separator: " ", maxSplits: 1)
      guard words.count == 2, let method = HTTPRequest.Method(String(words[0])), isTaken(words[1]) else { return nil }
      var head = HTTPRequest(
        method: method, scheme: "http", authority: "127.0.0.1:8197", path: String(words[1]))
      if lines.count > 1, !lines[1].isEmpty { head.headerFields[.contentType] = String(lines[1]) }
      let body = lines.count > 2 ? String(lines[2]) : ""
      // Such requests would mostly wait.
      guard !["timeout", "settle"].contains(where: body.contains) else { return nil }
      return Request(head: head, body: RequestBody(buffer: ByteBuffer(string: body)))
    }
  }

  /// Excludes endless responses, paths that need a network, and paths that the HTTP server would reject.
  private static func isTaken(_ path: Substring) -> Bool {
    path.hasPrefix("/") && path.utf8.allSatisfy { (0x21...0x7e).contains($0) }
      && !["wait", "events", "send", "%"].contains { path.prefix { $0 != "?" }.contains($0) }
  }

  /// Checks that there was no internal error and that JSON responses are valid JSON.
  private static func check(_ request: Request, _ response: Response?) async {
    guard let response else { fatalError("\(request.uri): no response") }
    expect(response.status.code < 500, "\(request.method) \(request.uri): \(response.status)")
    let written = WrittenAnswer()
    try? await response.body.write(written)
    guard let type = response.headers[.contentType], type.contains("json"), !type.contains("ndjson"),
      request.method != .head
    else { return }
    let problem = written.bytes.withLockedValue { $0.withUnsafeBytes { JSONText.problem(in: $0) } }
    expect(problem == nil, "\(request.method) \(request.uri): the response is not JSON, \(problem?.description ?? "")")
  }
}

/// Collects a response body.
private struct WrittenAnswer: ResponseBodyWriter {
  let bytes = NIOLockedValueBox<[UInt8]>([])

  func write(_ buffer: ByteBuffer) async throws { bytes.withLockedValue { $0 += Array(buffer.readableBytesView) } }

  consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
}
