import Dispatch
import Hummingbird
import Inbox
import HTTPTypes
import HummingbirdCore
import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOEmbedded
import Notation

@testable import AdminAPI
@testable import MockAPNS

/// Requests of the admin API, from their path to the whole answer, without the socket: method and path on the first line, the
/// content type on the second, then the body, and after a line `%%` the next request to the same server.
struct AdminTarget: FuzzTarget {
  private let server: FuzzServer
  private let channel = NIOAsyncTestingChannel()

  init() throws { server = try FuzzServer() }

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
      // A ttl would keep the server in memory.
      state.faults.removeRules()
      state.faults.useHealthy()
      done.signal()
    }
    // Who waits for pushes can do so for minutes. None comes, and he goes away.
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
      // Waiting is what this would mostly do then.
      guard !["timeout", "settle"].contains(where: body.contains) else { return nil }
      return Request(head: head, body: RequestBody(buffer: ByteBuffer(string: body)))
    }
  }

  /// Not what goes on until somebody leaves, nor what needs a network, and no path that the server in front would not let through.
  private static func isTaken(_ path: Substring) -> Bool {
    path.hasPrefix("/") && path.utf8.allSatisfy { (0x21...0x7e).contains($0) }
      && !["wait", "events", "send", "%"].contains { path.prefix { $0 != "?" }.contains($0) }
  }

  /// Nothing goes wrong inside, and what is said to be JSON is JSON.
  private static func check(_ request: Request, _ response: Response?) async {
    guard let response else { fatalError("\(request.uri): no answer") }
    expect(response.status.code < 500, "\(request.method) \(request.uri): \(response.status)")
    let written = WrittenAnswer()
    try? await response.body.write(written)
    guard let type = response.headers[.contentType], type.contains("json"), !type.contains("ndjson"),
      request.method != .head
    else { return }
    let problem = written.bytes.withLockedValue { $0.withUnsafeBytes { JSONText.problem(in: $0) } }
    expect(problem == nil, "\(request.method) \(request.uri): the answer is not JSON, \(problem?.description ?? "")")
  }
}

/// Where an answer is written to.
private struct WrittenAnswer: ResponseBodyWriter {
  let bytes = NIOLockedValueBox<[UInt8]>([])

  func write(_ buffer: ByteBuffer) async throws { bytes.withLockedValue { $0 += Array(buffer.readableBytesView) } }

  consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
}
