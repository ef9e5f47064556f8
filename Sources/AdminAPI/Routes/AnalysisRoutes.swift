internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS
internal import APNSMockNotation

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

  private func findings(_ request: Request, _ context: AdminContext) async throws -> Response {
    var parameters = try QueryParameters(request)
    let buckets = try parameters.removeBuckets()
    var selection = try await Selection(
      searching: parameters.all, in: source.filterContext(source.inbox.snapshot()))
    // There are findings about broadcasts and channel requests.
    selection.includesAllKinds = true
    let summary = try await source.inbox.summaryInSlices(
      of: selection, by: source.rulebook, limit: Self.shown, buckets: buckets)
    return .json { summary.writeMembers(to: &$0) }
  }

  private func explain(_ request: Request, _ context: AdminContext) async throws -> Response {
    let (record, _) = try await PushRoutes(source: source).find(context)
    try source.inbox.updateFindings(by: source.rulebook)
    let evaluations = source.evaluateRules(of: record)
    return .json {
      record.writeExplanation(to: &$0, rulebook: source.rulebook, in: source.inbox, evaluations: evaluations)
    }
  }

  private func statistics(_ request: Request, _ context: AdminContext) async throws -> Response {
    let snapshot = source.inbox.snapshot().leavingOutDamage
    var parameters = try QueryParameters(request)
    var statistics = InboxStatistics(buckets: try parameters.removeBuckets())
    let selection = try await Selection(searching: parameters.all, in: source.filterContext(snapshot))
    try await snapshot.checkWork(of: selection)
    var iterator = InboxIterator(snapshot, selection)
    while let records = try iterator.next() {
      for record in records { statistics.add(record) }
      // Let other queries run: this one may be slow.
      await Task.yield()
      try Task.checkCancellation()
    }
    let counted = statistics
    return .json { counted.write(to: &$0, of: snapshot, after: selection.after) }
  }
}

extension QueryParameters {
  private static let bucketCounts = 1...Timeline.maxBuckets

  /// Removes and returns the parameter `buckets`, the maximum number of buckets of a time line; nil if it is absent.
  ///
  /// - Throws: `Problem` (400) for a number out of range.
  fileprivate mutating func removeBuckets() throws(Problem) -> Int? {
    guard let text = try remove("buckets") else { return nil }
    guard let number = Int(text), Self.bucketCounts.contains(number) else {
      throw .badRequest(
        "buckets cannot be \"\(text.prefix(80))\"",
        hint:
          "It must be a whole number from 1 to \(Timeline.maxBuckets): the maximum number of parts of the time line.")
    }
    return number
  }
}
