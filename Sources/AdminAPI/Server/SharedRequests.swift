internal import APNSRules
internal import Devices
internal import Faults
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
  /// The maximum number of responses that are kept.
  private static let responseLimit = 64

  private struct State {
    /// The responses to requests that this server has received, until they are fetched. A few may never be: for requests
    /// that were given up.
    var responses: [Int: Response] = [:]
    var waiting: [Int: CheckedContinuation<Response, Never>] = [:]
    var work: AsyncStream<Work>.Continuation?
    /// Whether all requests that were announced before the start are executed.
    var hasStarted = false
    /// The number of the newest request that was confirmed.
    var confirmed = 0
  }

  /// What is done one after the other.
  private enum Work {
    case receive([StoreMessage])
    /// Tells that all earlier work is done.
    case report(CheckedContinuation<Void, Never>)
  }

  private let writer: RecordWriter
  private let server: ServerState
  private let state = NIOLockedValueBox(State())
  /// The number of the newest request that was executed.
  private let newest = NIOLockedValueBox(0)

  init(_ writer: RecordWriter, of server: ServerState) {
    self.writer = writer
    self.server = server
  }

  /// Waits until a query finds all pushes that servers have answered so far, and until what they have announced is
  /// executed.
  ///
  /// - Parameter isRequired: Whether a store that fails is an error.
  func settle(isRequired: Bool) async throws {
    do {
      try await writer.settle()
      await caughtUp()
    } catch {
      if isRequired { throw error }
    }
  }

  /// Waits until all requests that were received so far are executed.
  private func caughtUp() async {
    await withCheckedContinuation { continuation in
      let isPassedOn = state.withLockedValue { state in
        guard case .enqueued? = state.work?.yield(.report(continuation)) else { return false }
        return true
      }
      if !isPassedOn { continuation.resume() }
    }
  }

  // MARK: - Announcing

  /// Announces a request, and waits until all servers have executed it.
  ///
  /// - Parameters:
  ///   - path: The path of the route.
  ///   - handler: Executes the request on this server alone, if no server can execute it.
  /// - Returns: The response of this server.
  func execute(
    _ request: Request, _ kind: StoreCommand.Kind, path: String, handler: (Request) async throws -> Response
  ) async throws -> Response {
    // Only fixtures are that large.
    let body = try await RequestBody.bytes(
      of: request, limit: FixtureRoutes.bodyLimit, ifLarger: FixtureRoutes.bodyLimitHint)
    guard let text = String(validating: body.readableBytesView, as: UTF8.self) else {
      return try await handler(Request(head: request.head, body: .init(buffer: body)))
    }
    let announced = AnnouncedRequest(
      method: request.method.rawValue, uri: request.uri.string, type: request.headers[.contentType],
      body: request.method == .post && path == "/api/v1/channels" ? channel(text, body) : text,
      time: server.changeTime)
    let buffered = Request(head: request.head, body: .init(buffer: body))
    try await check(buffered, path: path, text)
    // An invalid request selects nothing.
    let reset = path == "/api/v1/reset" ? try? await ServerRoutes.selection(of: buffered) : nil
    // Pushes are removed from the store; if nothing else changes, later servers have nothing to do.
    let kind = reset?.scope != nil || reset?.parts == [.inbox] ? .once : kind
    let number = try await writer.blocking { [writer] in
      try writer.store.send(
        announced.json, kind, supersedesState: reset?.parts.count == ResetPart.allCases.count,
        emptiesInbox: reset?.parts.contains(.inbox) ?? false)
    }
    let response = await response(to: number)
    if kind == .lasting, request.method == .put, response.status.kind == .successful {
      // It replaces what was uploaded under this name before. If that cannot be noted, later servers execute both.
      try? await writer.blocking { [writer] in try writer.store.supersede(uri: announced.uri, before: number) }
    }
    let missing = try await writer.blocking { [writer] in
      try writer.store.awaitConfirmation(of: number, until: .now + .seconds(3))
    }
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

  /// Checks what must not be announced: a text that the database cannot store, and invalid fixtures, which are large and
  /// would be read again at each start.
  private func check(_ request: Request, path: String, _ text: String) async throws {
    guard !text.utf8.contains(0) else {
      throw Problem.badRequest("the body contains NUL", hint: "Send text, without this character.")
    }
    guard path == "/api/v1/fixtures", request.method == .put else { return }
    try await FixtureRoutes(state: server).check(request)
  }

  /// Returns the response of this server to an announced request, when its turn has come. Waits at most ten seconds.
  private func response(to number: Int) async -> Response {
    let timeout = Task { [self] in
      try await Task.sleep(for: .seconds(10))
      let problem = Problem(
        status: .serviceUnavailable, detail: "the change is announced, but not made yet",
        hint: "See GET /api/v1/status. The servers that share the store make the change as soon as it works.",
        headers: [.retryAfter: "1"])
      state.withLockedValue { $0.waiting.removeValue(forKey: number) }?.resume(returning: problem.response)
    }
    defer { timeout.cancel() }
    return await withCheckedContinuation { continuation in
      let response = state.withLockedValue { state in
        if let response = state.responses.removeValue(forKey: number) { return Response?.some(response) }
        state.waiting[number] = continuation
        return nil
      }
      if let response { continuation.resume(returning: response) }
    }
  }

  /// Returns the body of a request for a new channel with its id, so that all servers create the same channel.
  private func channel(_ text: String, _ body: ByteBuffer) -> String {
    guard let members = try? JSONBody(body), !members.names.contains("id"),
      let bundleID = try? members.text("bundle_id"),
      let reserved = try? server.channels.reserve(
        bundleID,
        in: (try? members.choice("environment", PushEnvironment.self)) ?? server.configuration.environment)
    else { return text }
    server.channels.release(reserved)
    // The body is an object.
    let id = #""id":"\#(reserved.id)","#
    guard let start = text.firstIndex(of: "{") else { return text }
    return String(text[...start]) + id + text[text.index(after: start)...]
  }

  // MARK: - Executing

  /// Starts to execute announced requests. Those that were announced before are executed when this returns.
  func start(_ responder: some HTTPResponder<AdminContext>, logger: Logger) async throws {
    let (stream, work) = AsyncStream.makeStream(of: Work.self)
    state.withLockedValue { $0.work = work }
    writer.receiveMessages { work.yield(.receive($0)) }
    let counters = server.faults.counters
    let newestBefore = writer.store.initialContents.lastMessage
    writer.announceCounts { counters.takeUnannounced(startedAfter: newestBefore)?.json }
    Task { [self] in
      for await work in stream {
        switch work {
        case .receive(let messages):
          var lastConfirmation = ContinuousClock.now
          for message in messages {
            switch message {
            case .command(let command): await execute(command, responder, logger)
            case .counts(let text): if let counts = SharedCounts(json: text) { counters.add(counts) }
            }
            // Not each on its own, because others wait, and each confirmation is a transaction.
            guard .now - lastConfirmation > .milliseconds(100) else { continue }
            _ = await confirm(logger)
            lastConfirmation = .now
          }
          _ = await confirm(logger)
        case .report(let continuation): continuation.resume()
        }
      }
    }
    try await settleAtStart()
    // From now on the other servers wait for this one.
    state.withLockedValue { $0.hasStarted = true }
    try await writer.blocking { [writer, newest] in
      // Also requests that only the servers which ran then had to execute.
      try writer.store.confirm(max(newest.withLockedValue(\.self), newestBefore))
    }
    // What was announced in the meantime, without waiting for this server.
    try await settleAtStart()
  }

  /// Waits until all announced requests are executed. Another server that does not reply is given up after ten seconds.
  private func settleAtStart() async throws {
    for _ in 0..<8 {
      do {
        return try await settle(isRequired: true)
      } catch is StoreUnavailable {
        try await Task.sleep(for: .milliseconds(250))
      }
    }
    try await settle(isRequired: true)
  }

  /// The response to a request whose changes could not be written.
  private static func unwritten(_ error: StoreUnavailable) -> Problem {
    Problem(
      status: .serviceUnavailable, detail: "the change is made, but the store does not have it yet: \(error.problem)",
      hint: "See GET /api/v1/status. Other servers find the change as soon as the store works.",
      headers: [.retryAfter: "1"])
  }

  private func execute(_ command: StoreCommand, _ responder: some HTTPResponder<AdminContext>, _ logger: Logger) async {
    var response: Response
    do {
      guard let announced = AnnouncedRequest(json: command.text) else { throw StoreUnavailable(problem: "unreadable") }
      server.begin(request: command.number)
      response = try await ServerState.$requestTime.withValue(announced.time) {
        try await FaultControl.$requestAge.withValue(command.age) {
          try await responder.respond(
            to: announced.request, context: AdminContext(AdminContext.Sender(logger: logger)))
        }
      }
    } catch {
      logger.error("request \(command.number) of a server that shares the store: \(error)")
      response = Response(status: .internalServerError)
    }
    server.endRequest()
    newest.withLockedValue { $0 = command.number }
    guard command.isOwn else { return }
    if let error = await confirm(logger), response.status.kind == .successful {
      response = Self.unwritten(error).response
    }
    let waiting = state.withLockedValue { state -> CheckedContinuation<Response, Never>? in
      if let waiting = state.waiting.removeValue(forKey: command.number) { return waiting }
      state.responses[command.number] = response
      if state.responses.count > Self.responseLimit, let oldest = state.responses.keys.min() {
        state.responses[oldest] = nil
      }
      return nil
    }
    waiting?.resume(returning: response)
  }

  /// Confirms the requests that were executed since the last call.
  ///
  /// - Returns: An error if their changes are not written.
  private func confirm(_ logger: Logger) async -> StoreUnavailable? {
    let number = newest.withLockedValue(\.self)
    // At the start, no server waits for this one. The number is less after a database without the newest request has taken
    // over.
    guard state.withLockedValue({ $0.hasStarted && number != $0.confirmed }) else { return nil }
    var result: StoreUnavailable?
    do {
      try await writer.settleChanges()
    } catch {
      logger.error("the changes of request \(number) to all servers are not written: \(error.problem)")
      result = error
    }
    do {
      try await writer.blocking { [writer] in try writer.store.confirm(number) }
      state.withLockedValue { $0.confirmed = number }
    } catch {
      logger.error("request \(number) of a server that shares the store cannot be confirmed: \(error.problem)")
    }
    return result
  }
}

extension AnnouncedRequest {
  /// The request for a route.
  fileprivate var request: Request {
    var head = HTTPRequest(
      method: HTTPRequest.Method(method) ?? .post, scheme: "http", authority: "localhost", path: uri)
    head.headerFields[.contentType] = type
    return Request(head: head, body: .init(buffer: ByteBuffer(string: body)))
  }
}
