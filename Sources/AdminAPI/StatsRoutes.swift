internal import Hummingbird
internal import Inbox
internal import MockAPNS
internal import Notation

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
