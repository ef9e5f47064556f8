internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS
internal import APNSMockNotation

/// Routes that export the inbox, and single pushes in formats of other tools.
struct ExportRoutes: Sendable {
  let source: any InboxSource

  var routes: [Route] {
    [
      .get("/export", export), Route.get("/pushes/:id/curl", curl).onQueryExecutor,
      Route.get("/pushes/:id/apns", simulatorFile).onQueryExecutor,
    ]
  }

  private func export(_ request: Request, _ context: AdminContext) async throws -> Response {
    var parameters = try QueryParameters(request)
    let format = try Self.format(parameters.remove("format"))
    let inbox = source.inbox
    let rulebook = source.rulebook
    let snapshot = inbox.snapshot()
    let selection = try await QueryExecutor.run { [parameters] in
      let selection = try await Selection(searching: parameters.all, in: source.filterContext(snapshot))
      try await snapshot.checkWork(of: selection)
      return selection
    }
    let eventLoop = DisconnectCancellation.channel?.eventLoop
    return Response(
      status: .ok, headers: [.contentType: format.contentType],
      body: ResponseBody { writer in
        var export = InboxExport(snapshot, selection, as: format, rulebook: rulebook, in: inbox)
        while let piece = try await QueryExecutor.step({ try export.next() }) {
          if !piece.isEmpty { try await writer.write(ByteBuffer(bytes: piece), atPaceOf: eventLoop) }
        }
        try await writer.finish(nil)
      })
  }

  private func curl(_ request: Request, _ context: AdminContext) async throws -> Response {
    let (record, _) = try await PushRoutes(source: source).find(context)
    let (port, caPath) = source.target(ofListener: record.connection.listener)
    do throws(NotRenderable) {
      return .text(
        try record.curlCommand(
          to: "https://localhost\(port.map { ":\($0)" } ?? "")", authority: caPath,
          tokenCommand: "apns-mock token provider --certs \(Self.folder(of: caPath).shellQuoted)"))
    } catch {
      throw Self.problem(error, of: record, "curl command")
    }
  }

  /// Returns the folder with the provider key, in which the CA's certificate is.
  private static func folder(of caPath: String) -> String {
    caPath.lastIndex(of: "/").map { String(caPath[..<$0]) } ?? "."
  }

  private func simulatorFile(_ request: Request, _ context: AdminContext) async throws -> Response {
    let (record, _) = try await PushRoutes(source: source).find(context)
    do throws(NotRenderable) {
      return .bytes(try record.simulatorFile(), type: JSONBody.type)
    } catch {
      throw Self.problem(error, of: record, "file for xcrun simctl push")
    }
  }

  private static func problem(_ error: NotRenderable, of record: Record, _ form: String) -> Problem {
    Problem(
      status: .unprocessableContent, detail: "push \(record.name) cannot be represented as a \(form): \(error.message)",
      hint: "The stored part of the body is at /api/v1/pushes/\(record.name)/payload.")
  }

  private static func format(_ text: String?) throws(Problem) -> InboxExport.Format {
    guard let text else { return .lines }
    do {
      return try Value.word(text, of: InboxExport.Format.self)
    } catch {
      throw .badRequest("format cannot be \"\(error.value.prefix(80))\"", hint: "Expected \(error.allowed).")
    }
  }
}

extension InboxExport.Format {
  fileprivate var contentType: String {
    switch self {
    case .lines: "application/x-ndjson"
    case .array, .httpArchive: "application/json"
    case .table: "text/csv; charset=utf-8"
    }
  }
}
