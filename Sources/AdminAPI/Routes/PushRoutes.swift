internal import APNSRules
internal import Hummingbird
internal import Inbox
internal import MockAPNS
internal import Notation

/// Routes that read pushes in the inbox, and the one that deletes them.
struct PushRoutes: Sendable {
  let source: any InboxSource

  var routes: [Route] {
    let routes: [Route] = [
      .get("/pushes", list), .get("/pushes/seqs", seqs), .get("/pushes/:id", show),
      .get("/pushes/:id/payload", payload),
    ]
    return routes.map(\.onQueryExecutor)
  }

  /// Returns the route that deletes pushes of a running server.
  static func deletion(in state: ServerState) -> Route {
    Route.delete("/pushes", PushRoutes(source: state).delete).onQueryExecutor
  }

  private func list(_ request: Request, _ context: AdminContext) async throws -> Response {
    let inbox = source.inbox
    let snapshot = inbox.snapshot()
    let rulebook = source.rulebook
    let query = try await PageQuery(searching: QueryParameters(request).all, in: source.filterContext(snapshot))
    let page = try await snapshot.pageInSlices(query, maxBytes: PageBody.maxBytes)
    if query.showsFindings { inbox.updateFindings(by: rulebook) }
    return try PageBody(page, of: query, rulebook: rulebook, inbox: inbox).response
  }

  private func seqs(_ request: Request, _ context: AdminContext) async throws -> Response {
    var parameters = try QueryParameters(request)
    let field = try Self.word(parameters.remove("sort"), "sort", SortField.self) ?? .seq
    let order = try Self.word(parameters.remove("order"), "order", PageQuery.Order.self) ?? .ascending
    let snapshot = source.inbox.snapshot()
    let selection = try await Selection(searching: parameters.all, in: source.filterContext(snapshot))
    let seqs = try await snapshot.sortedSeqs(of: selection, by: field, order)
    return .json { writer in
      writer.arrayMember("seqs") { writer in
        for seq in seqs { writer.integer(seq) }
      }
      writer.member("matched", seqs.count)
      writer.member("total", snapshot.count)
      writer.member("evicted", snapshot.evicted)
    }
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

  private func delete(_ request: Request, _ context: AdminContext) async throws -> Response {
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
      let deleted = try await source.inbox.empty()
      try source.inbox.checkIsEmptied()
      return .json { $0.member("deleted", deleted) }
    case (false, false):
      let deleted = try await source.inbox.removeInSlices(selection)
      return .json { $0.member("deleted", deleted) }
    }
  }

  private func show(_ request: Request, _ context: AdminContext) async throws -> Response {
    let (record, attempts) = try await find(context)
    let rulebook = source.rulebook
    source.inbox.updateFindings(by: rulebook)
    return .json { writer in
      record.writeMembers(to: &writer, rulebook: rulebook, in: source.inbox)
      if let attempts {
        writer.arrayMember("attempts") { writer in
          for seq in attempts { writer.integer(seq) }
        }
      }
    }
  }

  private func payload(_ request: Request, _ context: AdminContext) async throws -> Response {
    let (record, _) = try await find(context)
    // A body that is not JSON could be HTML with a script; its content type prevents browsers from rendering it.
    let type = record.payloadProblem == nil ? "application/json" : "application/octet-stream"
    return Response(
      status: .ok, headers: [.contentType: type], body: ResponseBody(byteBuffer: ByteBuffer(bytes: record.body)))
  }

  /// Returns the record that the path names: by its `seq`, or by an `apns-id`, which selects the newest attempt with
  /// that id. In the latter case also returns the `seq` of all attempts.
  func find(_ context: AdminContext) async throws -> (record: Record, attempts: [Int]?) {
    let id = context.parameters.get("id") ?? ""
    if id.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      if let record = Int(id).flatMap(source.inbox.record) { return (record, nil) }
      throw Problem.notFound("there is no push with seq \(id)", hint: inboxSummary)
    }
    let attempts = try await source.inbox.snapshot().attempts(apnsID: id)
    guard let newest = attempts.last else {
      throw Problem.notFound("there is no push with apns-id \(id)", hint: inboxSummary)
    }
    return (newest, attempts.map(\.seq))
  }

  private var inboxSummary: String {
    let snapshot = source.inbox.snapshot()
    let evicted =
      snapshot.evicted > 0
      ? " \(snapshot.evicted) were evicted (--max-records, --max-bytes, --retain) or not kept (--record)." : ""
    return "The inbox has \(snapshot.count) pushes, the newest of all was seq \(snapshot.lastSeq).\(evicted)"
  }
}

/// A page of the inbox as JSON, rendered in pieces so that only a few of them are buffered for a slow client. Most records
/// of an inbox with a store are read at the client's pace too: they are in the state of that moment, and records that were
/// deleted before that are omitted.
private struct PageBody: Sendable {
  /// The minimum size of a piece, in bytes. A piece ends with the record that reaches it.
  private static let pieceSize = 12 * 1024
  /// The maximum size of the records that are in memory before the first piece is rendered if there is a store, in bytes.
  static let maxBytes = 64 * 1024
  /// The number of further records that are read at a time.
  private static let groupSize = 16

  private let page: InboxPage
  private let fields: RecordMembers?
  /// Whether the query has a time limit.
  private let isLimited: Bool
  private let rulebook: Rulebook
  private let inbox: Inbox
  /// The records to render, of those in memory.
  private var records: ArraySlice<Record>
  /// The `seq` of the records to read and to render after those.
  private var unread: ArraySlice<Int>
  private var progress = Progress.beginning

  private enum Progress {
    case beginning, beforeFirstRecord, afterRecord, ended
  }

  init(_ page: InboxPage, of query: PageQuery, rulebook: Rulebook, inbox: Inbox) {
    self.page = page
    fields = query.fields
    isLimited = query.timeLimit != nil
    self.rulebook = rulebook
    self.inbox = inbox
    records = page.items[...]
    unread = page.unread[...]
  }

  /// The response with this body: with a content length if it is one piece, otherwise streamed at the client's pace.
  var response: Response {
    get throws {
      var rest = self
      let first = try rest.next() ?? ByteBuffer()
      let headers: HTTPFields = [.contentType: "application/json"]
      if rest.progress == .ended {
        return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: first))
      }
      let eventLoop = DisconnectCancellation.channel?.eventLoop
      return Response(
        status: .ok, headers: headers,
        body: ResponseBody { [rest] writer in
          var rest = rest
          try await writer.write(first)
          while let piece = try await QueryExecutor.step({ try rest.next() }) {
            try await writer.write(piece, atPaceOf: eventLoop)
          }
          try await writer.finish(nil)
        })
    }
  }

  /// Renders the next piece, which usually needs at most one read of the store; nil after the last one.
  private mutating func next() throws(StoreUnavailable) -> ByteBuffer? {
    guard progress != .ended else { return nil }
    var piece = ByteBuffer()
    if progress == .beginning {
      piece.writeString("{\"items\":[")
      progress = .beforeFirstRecord
    }
    while piece.readableBytes < Self.pieceSize {
      guard let record = try nextRecord() else {
        progress = .ended
        break
      }
      if progress == .afterRecord { piece.writeString(",") }
      progress = .afterRecord
      var writer = JSONWriter(capacity: 2048)
      if let fields {
        fields.write(record, to: &writer, rulebook: rulebook, in: inbox)
      } else {
        record.write(to: &writer, rulebook: rulebook, in: inbox)
      }
      piece.writeBytes(writer.bytes)
      if records.isEmpty, !unread.isEmpty { break }
    }
    guard progress == .ended else { return piece }
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("next", page.next)
      writer.member("matched", page.matched)
      writer.member("total", page.total)
      writer.member("evicted", page.evicted)
      writer.member("complete", page.isComplete)
      if isLimited {
        writer.member("first_seq", page.firstSeq)
        writer.member("last_seq", page.lastSeq)
      }
    }
    piece.writeString("],")
    // Continue the object that the first piece opened.
    piece.writeBytes(writer.bytes.dropFirst())
    return piece
  }

  /// Returns the next record; nil after the last one.
  private mutating func nextRecord() throws(StoreUnavailable) -> Record? {
    while records.isEmpty, !unread.isEmpty {
      records = try inbox.currentSnapshot().records(unread.prefix(Self.groupSize))[...]
      unread = unread.dropFirst(Self.groupSize)
    }
    return records.popFirst()
  }
}
