internal import Hummingbird
internal import Inbox
internal import MockAPNS
internal import Notation

/// Routes that analyze received pushes: findings about the provider, explanations of single pushes, statistics.
struct AnalysisRoutes: Sendable {
  let source: any InboxSource

  /// The number of pushes shown per kind of finding.
  private static let shown = 20

  var routes: [Route] {
    let routes: [Route] = [
      .get("/findings", findings), .get("/pushes/:id/explain", explain), .get("/stats", statistics),
    ]
    return routes.map(\.onQueryExecutor)
  }

  private func findings(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
    var selection = try Selection(QueryParameters(request).all, in: source.filterContext(source.inbox.snapshot()))
    // There are findings about broadcasts and channel requests.
    selection.includesAllKinds = true
    let summary = try await source.inbox.summaryInSlices(of: selection, by: source.rulebook, limit: Self.shown)
    return .json { summary.writeMembers(to: &$0) }
  }

  private func explain(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
    let (record, _) = try await PushRoutes(source: source).find(context)
    let evaluations = source.evaluateRules(of: record)
    return .json {
      record.writeExplanation(to: &$0, rulebook: source.rulebook, in: source.inbox, evaluations: evaluations)
    }
  }

  private func statistics(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
    let snapshot = source.inbox.snapshot()
    let selection = try Selection(QueryParameters(request).all, in: source.filterContext(snapshot))
    try await snapshot.checkWork(of: selection)
    var statistics = InboxStatistics()
    var iterator = InboxIterator(snapshot, selection)
    while let records = iterator.next() {
      for record in records { statistics.add(record) }
      // Let other queries run: this one may be slow.
      await Task.yield()
      try Task.checkCancellation()
    }
    let counted = statistics
    return .json { counted.write(to: &$0, of: snapshot, after: selection.after) }
  }
}
