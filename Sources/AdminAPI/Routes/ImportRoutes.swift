internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS
internal import NIOCore
internal import APNSMockNotation
internal import Synchronization

/// The route that adds exported pushes to the inbox.
struct ImportRoutes: Sendable {
  let state: ServerState
  private let limit = ImportLimit()

  /// The maximum memory of an import, in bytes: an inbox with a store may be unlimited.
  private static let maxBytes = 2 << 30

  init(state: ServerState) { self.state = state }

  var routes: [Route] { [.post("/import", importExport)] }

  private func importExport(_ request: Request, _ context: AdminContext) async throws -> Response {
    try RequestBody.type(of: request, among: ["application/x-ndjson", JSONBody.type])
    let keepsConnections = try Self.keepsConnections(request)
    try limit.enter()
    defer { limit.leave() }
    let imported = try await read(request, keepsConnections: keepsConnections)
    let snapshot = imported.snapshot()
    guard snapshot.count <= state.configuration.maxRecords else {
      throw Problem(
        status: .contentTooLarge,
        detail: "the export has \(snapshot.count) pushes, and the inbox holds \(state.configuration.maxRecords)",
        hint: "Export fewer, or start the server with a higher --max-records.")
    }
    let range = try await appended(imported, isOwn: keepsConnections)
    return .json { writer in
      writer.member("imported", snapshot.count)
      writer.member("first_seq", range?.lowerBound)
      writer.member("last_seq", range?.upperBound)
    }
  }

  private func appended(_ imported: Inbox, isOwn: Bool) async throws -> ClosedRange<Int>? {
    do {
      return try await QueryExecutor.run { try await state.inbox.append(imported: imported, isOwn: isOwn) }
    } catch let failure as StoreUnavailable {
      throw Problem(
        status: .serviceUnavailable, kind: .storeUnavailable,
        detail: "the store of the inbox fails: \(failure.problem)",
        hint: "Some pushes may be imported, now or when it works. Check the inbox before you repeat the request.")
    }
  }

  /// Returns whether the export is of this server, so that its connections, runs and tests are those of the inbox.
  private static func keepsConnections(_ request: Request) throws(Problem) -> Bool {
    var parameters = try QueryParameters(request)
    let connections = try parameters.remove("connections")
    guard connections == nil || connections == "own" else {
      throw .badRequest(
        "connections cannot be \"\((connections ?? "").prefix(80))\"",
        hint: "Use own for an export of this server, or omit it.")
    }
    if let other = parameters.all.first?.name {
      throw .badRequest(
        "the query has an unknown parameter \"\(other.prefix(80))\"", hint: "The only parameter is connections.")
    }
    return connections == "own"
  }

  /// Reads the whole export, so that nothing is added if any record is invalid.
  ///
  /// - Throws: `Problem` (400) with the line of an invalid record, or if the body is incomplete.
  private func read(_ request: Request, keepsConnections: Bool) async throws -> Inbox {
    var export = InboxImport(
      maxBytes: min(state.configuration.maxBytes, Self.maxBytes), now: state.clock.now,
      // The number of its first push, which no other import has.
      connectionPrefix: keepsConnections ? "" : "import \(state.inbox.snapshot().lastSeq + 1): ")
    do {
      for try await piece in request.body {
        try await QueryExecutor.step { try export.read(Array(piece.readableBytesView)) }
      }
      return try export.finish()
    } catch let problem as InboxImport.Problem {
      throw Problem.badRequest(
        "line \(problem.line) of the export: \(problem.reason)",
        hint: "Send the output of GET /api/v1/export. Nothing was imported.")
    } catch let error as CancellationError {
      throw error
    } catch {
      // Malformed chunks, or a client that disconnected.
      throw Problem.badRequest("the body is incomplete: \(error)", hint: "Send it again. Nothing was imported.")
    }
  }
}

/// Allows one import at a time, because each may use as much memory as the inbox.
private final class ImportLimit: Sendable {
  private let isRunning = Atomic(false)

  /// - Throws: `Problem` (503) if an import is running.
  func enter() throws(Problem) {
    guard isRunning.exchange(true, ordering: .acquiring) == false else {
      throw Problem(
        status: .serviceUnavailable, detail: "another import is running", hint: "Repeat the request when it has ended.",
        headers: [.retryAfter: "1"])
    }
  }

  func leave() { isRunning.store(false, ordering: .releasing) }
}
