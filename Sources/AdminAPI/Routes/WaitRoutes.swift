internal import Hummingbird
internal import Inbox
internal import MockAPNS
internal import Notation

/// The route that waits until a number of pushes has arrived.
struct WaitRoutes: Sendable {
  let state: ServerState
  let waits: WaitLimit

  var routes: [Route] { [.get("/pushes/wait", wait)] }

  private func wait(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
    var parameters = try QueryParameters(request)
    let isStrict = try parameters.takeFlag("strict")
    var query: WaitQuery
    do {
      query = try WaitQuery(parameters.all, in: state.filterContext(nil))
    } catch {
      throw Problem(error)
    }
    if state.viewedFile != nil {
      // A view of an export receives no pushes.
      query.timeout = .zero
      query.settle = .zero
    }
    let slot = query.timeout > .zero || query.settle > .zero ? try waits.enter() : nil
    defer { withExtendedLifetime(slot) {} }
    return try await QueryExecutor.run { [query] in try await answer(to: query, isStrict: isStrict) }
  }

  private func answer(to query: WaitQuery, isStrict: Bool) async throws(Problem) -> Response {
    let answer = await state.inbox.wait(for: query)
    if answer.isAbandoned {
      throw Problem(
        status: .serviceUnavailable, detail: "the server stops; \(answer.message)",
        hint: "Start it again, and wait while it runs.")
    }
    return .json(status: isStrict && !answer.isSatisfied ? .preconditionFailed : .ok) { writer in
      writer.member("satisfied", answer.isSatisfied)
      writer.member("matched", answer.matched)
      writer.arrayMember("items") { writer in
        for record in answer.items { record.write(to: &writer, rulebook: state.rulebook, in: state.inbox) }
      }
      writer.member("seq", answer.seq)
      writer.member("message", answer.message)
      writer.arrayMember("nearest") { writer in
        for miss in answer.nearest { writer.object { miss.write(to: &$0) } }
      }
      writer.member("evicted", answer.evicted)
      writer.member("complete", answer.isComplete)
    }
  }
}

extension NearMiss {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("seq", record.seq)
    writer.member("met", met)
    writer.member("missed", missed)
  }
}
