internal import Hummingbird
internal import Inbox
internal import Logging
internal import MockAPNS
internal import NIOConcurrencyHelpers
internal import NIOCore
internal import Notation

/// Requests that change the state of servers which share a store: all servers execute them, in the same order.
///
/// The server that receives such a request announces it in the store. Each server executes it when its turn comes, and
/// confirms it. The response leaves when all servers have confirmed it, so the next push is judged by the new state
/// wherever it arrives. A server that starts later executes the earlier requests first.
final class SharedRequests: Sendable {
  /// The maximum size of the body of a request, in bytes.
  private static let bodyLimit = 64 << 20

  private struct State {
    /// The responses to requests that this server has received, until they are fetched.
    var responses: [Int: Response] = [:]
    var waiting: [Int: CheckedContinuation<Response, Never>] = [:]
  }

  private let writer: RecordWriter
  private let server: ServerState
  private let state = NIOLockedValueBox(State())

  init(_ writer: RecordWriter, of server: ServerState) {
    self.writer = writer
    self.server = server
  }

  /// Waits until a query finds all pushes that servers have answered so far.
  ///
  /// - Parameter isRequired: Whether a store that fails is an error.
  func settle(isRequired: Bool) async throws {
    do {
      try await writer.settle()
    } catch {
      if isRequired { throw error }
    }
  }

  // MARK: - Announcing

  /// Announces a request, and waits until all servers have executed it.
  ///
  /// - Returns: The response of this server.
  func execute(_ request: Request, _ kind: StoreCommand.Kind) async throws -> Response {
    let body = try await RequestBody.bytes(of: request, limit: Self.bodyLimit)
    let path = request.uri.path
    let announced = AnnouncedRequest(
      method: request.method.rawValue, uri: request.uri.string, type: request.headers[.contentType],
      body: try Self.text(body), time: server.changeTime)
    let isReset = path == "/api/v1/reset"
    let members = isReset ? try? JSONBody(body) : nil
    // The pushes of a scope are removed from the store, and nothing else changes.
    let isScoped = isReset && members?.names.contains("scope") ?? false
    let isOfEverything = isReset && members?.names.isEmpty ?? false
    let number = try await writer.blocking { [writer] in
      try writer.store.send(announced.json, isScoped ? .once : kind, supersedesState: isOfEverything)
    }
    let response = await withCheckedContinuation { continuation in
      let response = state.withLockedValue { state in
        if let response = state.responses.removeValue(forKey: number) { return Response?.some(response) }
        state.waiting[number] = continuation
        return nil
      }
      if let response { continuation.resume(returning: response) }
    }
    let missing = try await writer.blocking { [writer] in try writer.store.awaitConfirmation(of: number) }
    guard missing.isEmpty else {
      let names = missing.map { String($0) }.joined(separator: ", ")
      throw Problem(
        status: .serviceUnavailable,
        detail: "the change is made, but servers that share the store have not confirmed it: \(names)",
        hint: "GET /api/v1/status lists the servers. They make the change as soon as they answer again.",
        headers: [.retryAfter: "1"])
    }
    return response
  }

  private static func text(_ body: ByteBuffer) throws(Problem) -> String {
    guard let text = String(validating: body.readableBytesView, as: UTF8.self) else {
      throw Problem.badRequest("the body is not UTF-8", hint: "Send it in that encoding.")
    }
    return text
  }

  // MARK: - Executing

  /// Starts to execute announced requests. Those that were announced before are executed when this returns.
  func start(_ responder: some HTTPResponder<AdminContext>, logger: Logger) async throws {
    let (commands, continuation) = AsyncStream.makeStream(of: [StoreCommand].self)
    let (caughtUp, caught) = AsyncStream.makeStream(of: Void.self)
    writer.receiveCommands { continuation.yield($0) }
    Task { [self] in
      for await commands in commands {
        for command in commands { await execute(command, responder, logger) }
        if commands.isEmpty { caught.finish() }
      }
    }
    try await writer.settle()
    // After all those that have been received.
    continuation.yield([])
    for await _ in caughtUp {}
  }

  private func execute(_ command: StoreCommand, _ responder: some HTTPResponder<AdminContext>, _ logger: Logger) async {
    let response: Response
    do {
      guard let announced = AnnouncedRequest(json: command.text) else { throw StoreUnavailable(problem: "unreadable") }
      response = try await SharedCommands.$isReplica.withValue(!command.isOwn) {
        try await ServerState.$requestTime.withValue(announced.time) {
          try await responder.respond(to: announced.request, context: AdminContext(AdminContext.Sender(logger: logger)))
        }
      }
    } catch {
      logger.error("request \(command.number) of a server that shares the store: \(error)")
      response = Response(status: .internalServerError)
    }
    do {
      try await writer.blocking { [writer] in try writer.store.confirm(command.number) }
    } catch {
      logger.error("request \(command.number) of a server that shares the store cannot be confirmed: \(error.problem)")
    }
    guard command.isOwn else { return }
    let waiting = state.withLockedValue { state -> CheckedContinuation<Response, Never>? in
      if let waiting = state.waiting.removeValue(forKey: command.number) { return waiting }
      state.responses[command.number] = response
      return nil
    }
    waiting?.resume(returning: response)
  }
}

/// A request as it is announced.
private struct AnnouncedRequest {
  let method: String
  let uri: String
  let type: String?
  let body: String
  /// The clock of the server that received it, in milliseconds since 1970.
  let time: Int64

  init(method: String, uri: String, type: String?, body: String, time: Int64) {
    (self.method, self.uri, self.type, self.body, self.time) = (method, uri, type, body, time)
  }

  var json: String {
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("method", method)
      writer.member("uri", uri)
      writer.member("type", type)
      writer.member("body", body)
      writer.member("time", time)
    }
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  init?(json text: String) {
    guard case .object(let object) = JSONValue(Array(text.utf8)[...]) else { return nil }
    func member(_ name: String) -> String? {
      guard case .text(let text) = object.members[name] else { return nil }
      return text
    }
    guard let method = member("method"), let uri = member("uri"), let body = member("body"),
      case .number(let number) = object.members["time"], let time = Int64(number)
    else { return nil }
    self.init(method: method, uri: uri, type: member("type"), body: body, time: time)
  }

  var request: Request {
    var head = HTTPRequest(
      method: HTTPRequest.Method(method) ?? .post, scheme: "http", authority: "localhost", path: uri)
    head.headerFields[.contentType] = type
    return Request(head: head, body: .init(buffer: ByteBuffer(string: body)))
  }
}
