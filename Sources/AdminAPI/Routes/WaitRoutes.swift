internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS
internal import NIOConcurrencyHelpers
internal import APNSMockNotation

/// The route that waits until a number of pushes has arrived.
struct WaitRoutes: Sendable {
  let source: any InboxSource
  let waits: WaitLimit

  var routes: [Route] { [.get("/pushes/wait", wait)] }

  private func wait(_ request: Request, _ context: AdminContext) async throws -> Response {
    var parameters = try QueryParameters(request)
    let isStrict = try parameters.removeFlag("strict")
    // A condition on findings analyzes the whole inbox.
    let conditions = parameters.all
    var query = try await QueryExecutor.step { try WaitQuery(conditions, in: source.filterContext(nil)) }
    if !source.receivesPushes {
      query.timeout = .zero
      query.settle = .zero
    }
    guard query.timeout > .zero || query.settle > .zero else {
      return try await QueryExecutor.runLimited { [query] in
        try await response(to: query, conditions, isStrict: isStrict)
      }
    }
    let slot = try waits.enter()
    defer { withExtendedLifetime(slot) {} }
    return try await QueryExecutor.run { [query] in try await response(to: query, conditions, isStrict: isStrict) }
  }

  private func response(
    to query: WaitQuery, _ parameters: [(name: String, value: String)], isStrict: Bool
  ) async throws -> Response {
    let result = try await source.inbox.wait(for: query, maxBytes: RecordList.maxBytes)
    if result.isAbandoned {
      throw Problem(
        status: .serviceUnavailable, kind: .stopping, detail: "the server stops; \(result.message)",
        hint: "Start it again, and wait while it runs.")
    }
    let report = await WaitReport(
      result, of: query, parameters: parameters, in: source.inbox,
      context: source.filterContext(source.inbox.snapshot()))
    let seq = try source.inbox.name(ofSeq: result.seq)
    let list = RecordList(result.items, unread: result.unread, rulebook: source.rulebook, inbox: source.inbox)
    return try list.response(status: isStrict && !result.isSatisfied ? .preconditionFailed : .ok) { writer in
      writer.member("satisfied", result.isSatisfied)
      writer.member("matched", result.matched)
    } after: { writer in
      writer.member("seq", seq)
      writer.member("message", result.message)
      writer.arrayMember("nearest") { writer in
        for push in report.nearest { writer.object { push.write(to: &$0) } }
      }
      writer.member("evicted", result.evicted)
      writer.member("complete", result.isComplete)
      writer.member("text", report.text)
    }
  }
}

extension WaitReport.NearestPush {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("seq", record.name)
    writer.arrayMember("criteria") { writer in
      for criterion in criteria { writer.object(criterion.write) }
    }
    writer.member("advice", advice)
  }
}

/// A limit on the admin requests that wait for pushes or follow events, so that connections remain for other
/// requests.
final class WaitLimit: Sendable {
  /// A waiting request. It counts until this object is released.
  final class Slot: Sendable {
    private let waits: WaitLimit

    fileprivate init(_ waits: WaitLimit) { self.waits = waits }

    deinit { waits.count.withLockedValue { $0 -= 1 } }
  }

  /// The maximum number of waiting requests: all connections to the admin listener but 256, at least
  /// half of them.
  let limit: Int
  private let count = NIOLockedValueBox(0)

  private static var defaultLimit: Int {
    let connections = FileDescriptorBudget.adminConnections
    return max(1, connections / 2, connections - 256)
  }

  init(limit: Int = defaultLimit) { self.limit = limit }

  /// Counts a request that is about to wait.
  ///
  /// - Throws: `Problem` (503) if the limit is reached.
  func enter() throws(Problem) -> Slot {
    let isFull = count.withLockedValue { count in
      guard count < limit else { return true }
      count += 1
      return false
    }
    guard !isFull else {
      throw Problem(
        status: .serviceUnavailable,
        detail: "\(limit) requests wait for pushes or follow events, and no more may at once",
        hint: """
          Retry when one of them has finished, wait for several pushes in one request, or start the server with a higher \
          limit of open files (`ulimit -n`).
          """)
    }
    return Slot(self)
  }
}
