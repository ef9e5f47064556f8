internal import Hummingbird
internal import Inbox
internal import MockAPNS
internal import Notation

/// Reading the inbox, and emptying it.
struct PushRoutes: Sendable {
  let state: ServerState

  var routes: [Route] {
    [
      .get("/pushes", list), .delete("/pushes", delete), .get("/pushes/:id", show),
      .get("/pushes/:id/payload", payload),
    ]
  }

  private func list(_ request: Request, _ context: BasicRequestContext) throws -> Response {
    let snapshot = state.inbox.snapshot()
    let rulebook = state.rulebook
    let query: PageQuery
    do {
      query = try PageQuery(QueryParameters(request).all, in: state.filterContext(snapshot))
    } catch let error as FilterError {
      throw Problem(error)
    }
    let page = snapshot.page(query)
    let inbox = state.inbox
    if query.showsFindings { inbox.judge(by: rulebook) }
    return .json { writer in
      writer.arrayMember("items") { writer in
        for record in page.items {
          if let fields = query.fields {
            fields.write(record, to: &writer, rulebook: rulebook, in: inbox)
          } else {
            record.write(to: &writer, rulebook: rulebook, in: inbox)
          }
        }
      }
      writer.member("next", page.next)
      writer.member("matched", page.matched)
      writer.member("total", page.total)
      writer.member("evicted", page.evicted)
      writer.member("complete", page.isComplete)
    }
  }

  private func delete(_ request: Request, _ context: BasicRequestContext) throws -> Response {
    var parameters = try QueryParameters(request)
    let all = try parameters.take("all")
    guard all == nil || all == "true" else {
      throw Problem.badRequest("all cannot be \"\(all ?? "")\"", hint: "It is true, or left out.")
    }
    let selection: Selection
    do {
      selection = try Selection(parameters.all, in: state.filterContext(state.inbox.snapshot()))
    } catch {
      throw Problem(error)
    }
    switch (all != nil, parameters.all.isEmpty || all == nil && selection.isEverything) {
    case (false, true):
      throw Problem.badRequest(
        "nothing says which pushes to delete",
        hint: "Add a filter, such as ?topic=com.example.app, or ?all=true to empty the inbox.")
    case (true, false):
      throw Problem.badRequest(
        "all=true stands beside a filter", hint: "Leave out all=true to delete what the filter matches.")
    case (true, true):
      let deleted = state.inbox.removeAll()
      return .json { $0.member("deleted", deleted) }
    case (false, false):
      let deleted = state.inbox.remove(selection)
      return .json { $0.member("deleted", deleted) }
    }
  }

  private func show(_ request: Request, _ context: BasicRequestContext) throws -> Response {
    let (record, attempts) = try find(context)
    let rulebook = state.rulebook
    state.inbox.judge(by: rulebook)
    return .json { writer in
      record.writeMembers(to: &writer, rulebook: rulebook, in: state.inbox)
      if let attempts {
        writer.arrayMember("attempts") { writer in
          for seq in attempts { writer.integer(seq) }
        }
      }
    }
  }

  private func payload(_ request: Request, _ context: BasicRequestContext) throws -> Response {
    let (record, _) = try find(context)
    // What is not JSON could be a page with a script in it; it must not be shown as one.
    let type = record.payloadProblem == nil ? "application/json" : "application/octet-stream"
    return Response(
      status: .ok, headers: [.contentType: type], body: ResponseBody(byteBuffer: ByteBuffer(bytes: record.body)))
  }

  /// The record that the path names: by its `seq`, or by an `apns-id`, which stands for the newest attempt with it. In
  /// that case also the `seq` of all of them.
  func find(_ context: BasicRequestContext) throws(Problem) -> (record: Record, attempts: [Int]?) {
    let id = context.parameters.get("id") ?? ""
    if id.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      if let record = Int(id).flatMap(state.inbox.record) { return (record, nil) }
      throw .notFound("there is no push with seq \(id)", hint: whatIsThere)
    }
    let attempts = state.inbox.snapshot().attempts(apnsID: id)
    guard let newest = attempts.last else {
      throw .notFound("there is no push with apns-id \(id)", hint: whatIsThere)
    }
    return (newest, attempts.map(\.seq))
  }

  private var whatIsThere: String {
    let snapshot = state.inbox.snapshot()
    let evicted =
      snapshot.evicted > 0
      ? " \(snapshot.evicted) were dropped to keep the inbox in bounds (--max-records, --max-bytes)." : ""
    return "The inbox has \(snapshot.count) pushes, the newest of all was seq \(snapshot.lastSeq).\(evicted)"
  }
}
