internal import APNSMockRules
internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS
internal import NIOCore
internal import APNSMockNotation

/// Routes that read pushes in the inbox, and the one that deletes them.
struct PushRoutes: Sendable {
  let source: any InboxSource
  private let sorts = AsyncSemaphore(1)

  /// The number of `seq` values that are written at a time.
  private static let seqsInPiece = 1500

  init(source: any InboxSource) { self.source = source }

  var routes: [Route] {
    let routes: [Route] = [
      .get("/pushes", list), .get("/pushes/seqs", seqs), .get("/pushes/:id", show),
      .get("/pushes/:id/payload", payload),
    ]
    return routes.map(\.onQueryExecutor)
  }

  /// Returns the route that deletes pushes of a running server.
  static func deletion(in state: ServerState) -> Route {
    let routes = PushRoutes(source: state)
    return Route.delete("/pushes") { request, context in
      let (deleted, hasEmptied) = try await routes.delete(request)
      // An inbox that is emptied reports that itself.
      if !hasEmptied, deleted > 0 { state.events.append(.deleted) { $0.member("deleted", deleted) } }
      return .json { $0.member("deleted", deleted) }
    }.onQueryExecutor
  }

  /// The maximum number of records of a response that is compressed.
  private static let maxCompressed = 64

  private func list(_ request: Request, _ context: AdminContext) async throws -> Response {
    let inbox = source.inbox
    let snapshot = inbox.snapshot().leavingOutDamage
    let rulebook = source.rulebook
    let query = try await PageQuery(searching: QueryParameters(request).all, in: source.filterContext(snapshot))
    let page = try await snapshot.pageInSlices(query, maxBytes: RecordList.maxBytes)
    if query.showsFindings { try inbox.updateFindings(by: rulebook) }
    var list = RecordList(page.items, unread: page.unread, rulebook: rulebook, inbox: inbox)
    list.fields = query.fields
    let next = try page.next.map(inbox.name(ofSeq:))
    // On a slow network, the first rows of the web UI take a second less.
    let isSmall = (1...Self.maxCompressed).contains(page.items.count) && page.unread.isEmpty
    let isCompressed = isSmall && request.headers.acceptGzip
    return try list.response(isCompressed: isCompressed, before: { _ in }) { writer in
      writer.member("next", next)
      writer.member("matched", page.matched)
      writer.member("total", page.total)
      writer.member("evicted", page.evicted)
      writer.member("complete", page.isComplete)
      // Numbers, by which clients show how far a search is.
      if query.timeLimit != nil, !inbox.isOfSeveralServers {
        writer.member("first_seq", page.firstSeq)
        writer.member("last_seq", page.lastSeq)
      }
    }
  }

  private func seqs(_ request: Request, _ context: AdminContext) async throws -> Response {
    var parameters = try QueryParameters(request)
    let field = try Self.word(parameters.remove("sort"), "sort", SortField.self) ?? .seq
    let order = try Self.word(parameters.remove("order"), "order", PageQuery.Order.self) ?? .ascending
    let grouping = try Self.word(parameters.remove("group"), "group", Grouping.self)
    let inbox = source.inbox
    let snapshot = inbox.snapshot()
    let selection = try await Selection(searching: parameters.all, in: source.filterContext(snapshot))
    // A sort needs up to 150 bytes for each record, so there is one at a time. The numbers are kept until they are written.
    let (seqs, attempts, memory) = try await sorts.withPermit {
      let (seqs, attempts) = try await snapshot.sortedSeqs(
        of: selection, by: field, order, groupsAttempts: grouping != nil)
      let memory = MemoryBudget.Reservation(in: .responses)
      try memory.grow(by: seqs.count * MemoryLayout<Int>.size)
      return (seqs, attempts, memory)
    }
    let eventLoop = DisconnectCancellation.channel?.eventLoop
    return Response(
      status: .ok, headers: [.contentType: JSONBody.type],
      body: ResponseBody { writer in
        defer { withExtendedLifetime(memory) {} }
        try await writer.write(ByteBuffer(string: "{\"seqs\":["))
        for start in stride(from: 0, to: seqs.count, by: Self.seqsInPiece) {
          let piece = try await QueryExecutor.step {
            var names = JSONWriter()
            for seq in seqs[start..<min(start + Self.seqsInPiece, seqs.count)] {
              names.push(try inbox.name(ofSeq: seq))
            }
            return ByteBuffer(bytes: Array((start == 0 ? "" : ",").utf8) + names.bytes)
          }
          try await writer.write(piece, atPaceOf: eventLoop)
        }
        var end = JSONWriter()
        end.object { end in
          end.member("matched", seqs.count)
          if grouping != nil { end.member("attempts", attempts) }
          end.member("total", snapshot.count)
          end.member("evicted", snapshot.evicted)
        }
        // Continue the object that the first piece opened.
        try await writer.write(ByteBuffer(bytes: Array("],".utf8) + end.bytes.dropFirst()))
        try await writer.finish(nil)
      })
  }

  /// How a list is grouped; the raw value is the name.
  private enum Grouping: String, CaseIterable {
    /// One record for all selected attempts of a push.
    case push
  }

  /// Returns the case that a parameter names; nil without the parameter.
  private static func word<Word: RawRepresentable & CaseIterable>(
    _ text: String?, _ name: String, _ type: Word.Type
  ) throws(Problem) -> Word? where Word.RawValue == String {
    guard let text else { return nil }
    do {
      return try Value.word(text, of: type)
    } catch {
      throw .badRequest("\(name) cannot be \"\(error.value.prefix(80))\"", hint: "Expected \(error.allowed).")
    }
  }

  /// Deletes what a request selects.
  ///
  /// - Returns: The number of deleted records, and whether all were.
  private func delete(_ request: Request) async throws -> (deleted: Int, hasEmptied: Bool) {
    var parameters = try QueryParameters(request)
    let all = try parameters.remove("all")
    guard all == nil || all == "true" else {
      throw Problem.badRequest("all cannot be \"\(all ?? "")\"", hint: "It must be true or omitted.")
    }
    let selection = try await Selection(
      searching: parameters.all, in: source.filterContext(source.inbox.snapshot()))
    switch (all != nil, parameters.all.isEmpty || all == nil && selection.isEverything) {
    case (false, true):
      throw Problem.badRequest(
        "the query specifies no pushes to delete",
        hint: "Add a filter, such as ?topic=com.example.app, or ?all=true to empty the inbox.")
    case (true, false):
      throw Problem.badRequest(
        "all=true excludes a filter", hint: "Omit all=true to delete the pushes that the filter matches.")
    case (true, true):
      source.inbox.countAllAsMissing()
      let deleted = source.inbox.removeAll()
      try source.inbox.checkIsEmptied()
      return (deleted, true)
    case (false, false):
      return (try await source.inbox.removeInSlices(selection), false)
    }
  }

  private func show(_ request: Request, _ context: AdminContext) async throws -> Response {
    let (record, attempts) = try await find(context)
    let rulebook = source.rulebook
    try source.inbox.updateFindings(by: rulebook)
    return .json { writer in
      record.writeMembers(to: &writer, rulebook: rulebook, in: source.inbox)
      if let attempts { writer.member("attempts", attempts) }
    }
  }

  private func payload(_ request: Request, _ context: AdminContext) async throws -> Response {
    let (record, _) = try await find(context)
    // A body that is not JSON could be HTML with a script; its content type prevents browsers from rendering it.
    let type = record.payloadProblem == nil ? "application/json" : "application/octet-stream"
    return .bytes(record.body, type: type)
  }

  /// Returns the record that the path names: by its `seq`, in a view of several servers also by server and number such as
  /// `load_1:4711`, or by an `apns-id`, which selects the newest attempt with that id. In the latter case also returns all attempts.
  func find(_ context: AdminContext) async throws -> (record: Record, attempts: [PushName]?) {
    let id = context.parameters.get("id") ?? ""
    if id.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      guard !source.inbox.isOfSeveralServers else {
        throw Problem.notFound(
          "several servers have a push with seq \(id)", hint: "Add the server, such as load_1:\(id).")
      }
      if let seq = Int(id), let record = try source.inbox.record(seq: seq) { return (record, nil) }
      throw Problem.notFound("there is no push with seq \(id)", hint: inboxSummary)
    }
    let origin = source.inbox.isOfSeveralServers ? RecordOrigin(id) : nil
    if let origin, let record = try source.inbox.record(origin) { return (record, nil) }
    let attempts = try await source.inbox.snapshot().attempts(apnsID: id)
    guard let newest = attempts.last else {
      throw Problem.notFound("there is no push with apns-id \(id)", hint: inboxSummary)
    }
    return (newest, attempts.map(\.name))
  }

  private var inboxSummary: String {
    let snapshot = source.inbox.snapshot()
    let evicted =
      snapshot.evicted > 0
      ? " \(snapshot.evicted) were evicted (--max-records, --max-bytes, --retain) or not kept (--record)." : ""
    if snapshot.lastSeq == 0 { return "The inbox is empty.\(evicted.isEmpty ? " No push has arrived." : evicted)" }
    let pushes = snapshot.count.counted("push")
    guard let newest = try? source.inbox.name(ofSeq: snapshot.lastSeq) else {
      return "The inbox has \(pushes).\(evicted)"
    }
    return "The inbox has \(pushes), the newest of all was seq \(newest).\(evicted)"
  }
}
