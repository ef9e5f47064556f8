internal import Hummingbird
internal import Inbox
internal import MockAPNS
internal import Notation

/// Routes for the provider's mistakes and for the explanation of single pushes.
struct FindingRoutes: Sendable {
  let state: ServerState

  /// The number of cases shown per kind of finding.
  private static let shown = 20

  var routes: [Route] {
    let routes: [Route] = [.get("/findings", list), .get("/pushes/:id/explain", explain)]
    return routes.map(\.onQueryExecutor)
  }

  private func list(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
    let selection: Selection
    do {
      selection = try Selection(QueryParameters(request).all, in: state.filterContext(state.inbox.snapshot()))
    } catch let error as FilterError {
      throw Problem(error)
    }
    let summary = try await Problem.describing {
      try await state.inbox.summaryInSlices(of: selection, by: state.rulebook, limit: Self.shown)
    }
    return .json { summary.writeMembers(to: &$0) }
  }

  private func explain(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
    let (record, _) = try await PushRoutes(state: state).find(context)
    let walk = state.evaluateRules(of: record)
    return .json { record.writeExplanation(to: &$0, rulebook: state.rulebook, in: state.inbox, walk: walk) }
  }
}

/// The route of the statistics on received pushes.
struct StatsRoutes: Sendable {
  let state: ServerState

  var routes: [Route] { [Route.get("/stats", stats).onQueryExecutor] }

  private func stats(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
    let snapshot = state.inbox.snapshot()
    let selection: Selection
    do {
      selection = try Selection(QueryParameters(request).all, in: state.filterContext(snapshot))
    } catch let error as FilterError {
      throw Problem(error)
    }
    try await Problem.describing { try await snapshot.checkWork(of: selection) }
    var statistics = InboxStatistics()
    var walk = InboxWalk(snapshot, selection)
    while let records = walk.next() {
      for record in records { statistics.add(record) }
      // Let other queries run: this one may take long.
      await Task.yield()
      try Task.checkCancellation()
    }
    let counted = statistics
    return .json { counted.write(to: &$0, of: snapshot, after: selection.after) }
  }
}
