internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS
internal import NIOCore

/// The route of the event stream: server-sent events (HTML Standard, section 9.2).
struct EventRoutes: Sendable {
  let source: any InboxSource
  let waits: WaitLimit

  /// The maximum interval between two writes, so that intermediaries do not consider the connection dead.
  static let heartbeat = Duration.seconds(15)

  var routes: [Route] { [.get("/events", stream)] }

  private func stream(_ request: Request, _ context: AdminContext) async throws -> Response {
    var parameters = try QueryParameters(request)
    let given = try parameters.remove("last_event_id")
    // A condition on findings analyzes the whole inbox.
    let selection = try await QueryExecutor.step { try Selection(parameters.all, in: source.filterContext(nil)) }
    if let failure = selection.filter.failure { throw failure }
    let lastID = try Self.lastID(given, request)
    let slot = try waits.enter()
    guard let reader = source.events.addReader(after: lastID) else {
      throw Problem(
        status: .serviceUnavailable, kind: .stopping, detail: "the server stops",
        hint: "Start it again, and follow while it runs.")
    }
    let channel = DisconnectCancellation.channel
    // Send an id at once, so that a client that disconnects before the first event can resume from here.
    let preamble = ": apns-mock events\n\(lastID == nil ? "id: \(reader.start)\n" : "")\n"
    return Response(
      status: .ok, headers: [.contentType: "text/event-stream"],
      body: ResponseBody { writer in
        var body = writer
        // If the client has already disconnected, the observer stops the reader at once.
        let observer = channel.map { DisconnectCancellation.observe($0) { reader.stop() } }
        defer { withExtendedLifetime(slot) { observer?.end() } }
        try await send(reader, selection, after: preamble, to: &body)
        try await body.finish(nil)
      })
  }

  /// Returns the id to resume after. A browser that reconnects sends it in the header, while its URL still contains
  /// the initial value.
  private static func lastID(_ given: String?, _ request: Request) throws(Problem) -> Int? {
    if let text = request.headers.first(where: { $0.name.canonicalName == "last-event-id" })?.value {
      // An invalid header is treated as a gap: after an error, a browser would not reconnect.
      return Int(text) ?? .max
    }
    guard let given else { return nil }
    guard let id = Int(given), id >= 0 else {
      throw .badRequest(
        "last_event_id cannot be \"\(given.prefix(80))\"", hint: "It must be the id of the last received event.")
    }
    return id
  }

  private func send(
    _ reader: EventReader, _ selection: Selection, after preamble: String, to body: inout any ResponseBodyWriter
  ) async throws {
    try await body.write(ByteBuffer(string: preamble))
    let heartbeats = Task {
      while true {
        try await Task.sleep(for: Self.heartbeat)
        reader.signalHeartbeat()
      }
    }
    defer { heartbeats.cancel() }
    var position = reader.start
    var lastSent = ContinuousClock.now
    for await _ in reader.signals {
      while let events = try await QueryExecutor.step({
        reader.read(after: &position, selection, rulebook: source.rulebook, in: source.inbox)
      }) {
        guard !events.isEmpty else { continue }
        var buffer = ByteBuffer()
        for event in events { buffer.write(event) }
        try await body.write(buffer)
        lastSent = .now
      }
      if ContinuousClock.now - lastSent >= Self.heartbeat {
        try await body.write(ByteBuffer(string: ":\n\n"))
        lastSent = .now
      }
    }
    if !Task.isCancelled {
      try await body.write(ByteBuffer(string: "event: end\ndata: {\"message\":\"the server stops\"}\n\n"))
    }
  }
}

extension ByteBuffer {
  fileprivate mutating func write(_ event: EventReader.SerializedEvent) {
    writeString("event: \(event.name)\nid: \(event.id)\ndata: ")
    writeBytes(event.data)
    writeString("\n\n")
  }
}
