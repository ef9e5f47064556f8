internal import APNSMockDevices
internal import APNSMockFaults
internal import Hummingbird
internal import APNSMockInbox
internal import Logging
internal import APNSMockNotation

/// The middleware of all requests: access control, problem documents for errors, common response header fields.
struct AdminMiddleware: RouterMiddleware {
  let access: AccessRules
  let routes: [Route]
  /// The name of the export whose pushes are served read-only; nil for a running server.
  let viewedFile: String?
  /// Returns the URL of the active server; nil for a server that is no standby.
  let activeURL: (@Sendable () -> String?)?

  /// Header fields of every response that does not set them itself.
  static let fields: HTTPFields = [
    .xContentTypeOptions: "nosniff", .cacheControl: "no-store",
    .contentSecurityPolicy: "default-src 'none'; frame-ancestors 'none'",
  ]

  func handle(
    _ request: Request, context: AdminContext,
    next: (Request, AdminContext) async throws -> Response
  ) async throws -> Response {
    var response: Response
    do {
      try access.check(request)
      try checkIsActive(request)
      try checkReadOnly(request)
      response = try await next(request, context)
    } catch let problem as Problem {
      response = problem.response
    } catch let error as FilterError {
      response = Problem(error).response
    } catch let failure as StoreUnavailable {
      response = Problem(failure).response
    } catch let failure as ProfileFailure {
      response = Problem(failure).response
    } catch let failure as FileFailure {
      response = Problem(failure.problems).response
    } catch let error as HTTPError where error.status == .notFound {
      // The router does not distinguish an unknown path from an unsupported method.
      response = missing(request).response
    } catch is CancellationError {
      // The client has disconnected; the response is not sent.
      response = Response(status: .serviceUnavailable)
    } catch {
      context.logger.error("\(request.method) \(request.uri.path): \(error)")
      response =
        Problem(
          status: .internalServerError, detail: "internal error, see the server's log",
          hint: "Please report it with that line of the log."
        ).response
    }
    // Keep the fields that a route set itself.
    for field in Self.fields where response.headers[field.name] == nil { response.headers.append(field) }
    return request.method == .head ? HeadResponseHandler.headResponse(for: response) : response
  }

  /// Checks that a request does not change a viewed export.
  ///
  /// - Throws: `Problem` (403) if it would.
  private func checkReadOnly(_ request: Request) throws(Problem) {
    let method = request.method
    guard let viewedFile, method != .get, method != .head,
      !routes.contains(where: { $0.method == method && $0.matches(request.uri.path) })
    else { return }
    throw .forbidden(
      "this is a view of \(viewedFile), read only",
      hint: "To receive pushes and change state, start a server: apns-mock serve.")
  }

  /// Checks that the server is active, or that any server answers the request.
  ///
  /// - Throws: `Problem` (503) with the URL of the active server.
  private func checkIsActive(_ request: Request) throws(Problem) {
    guard let activeURL, !routes.contains(where: { $0.matches(request.uri.path) }) else { return }
    let url = activeURL()
    throw Problem(
      status: .serviceUnavailable, kind: .standby, detail: "this server is a standby: another one is active",
      hint: url.map { "Send the request to the active server: \($0)" }
        ?? "Send the request to the active server, whose address is unknown: start it with --advertise URL.",
      headers: url.map { [.location: $0 + request.uri.string, .retryAfter: "1"] } ?? [.retryAfter: "1"])
  }

  /// Paths that other servers have, with those of this one.
  private static let usualPaths = [
    "/healthz": "/readyz", "/health": "/readyz", "/ready": "/readyz", "/readiness": "/readyz",
    "/health/ready": "/readyz",
    "/live": "/livez", "/liveness": "/livez", "/health/live": "/livez", "/ping": "/livez",
    "/status": "/api/v1/status", "/version": "/api/v1/status", "/pushes": "/api/v1/pushes",
    "/api/v1/metrics": "/metrics", "/api/metrics": "/metrics", "/prometheus": "/metrics",
    "/swagger.json": "/openapi.json", "/openapi.yaml": "/openapi.json", "/docs": "/openapi.json",
  ]

  private func missing(_ request: Request) -> Problem {
    let path = request.uri.path
    // As in the router, literal components take precedence over variable ones.
    let candidates = routes.filter { $0.matches(path) }
    let variables = candidates.map(\.variableCount).min()
    let matching = candidates.filter { $0.variableCount == variables }
    // The router enters a literal component and does not return to a variable one.
    let isHidden = matching.contains { $0.method == request.method }
    guard matching.isEmpty || isHidden else {
      var methods = matching.map(\.method.rawValue)
      if methods.contains("GET") { methods.append("HEAD") }
      let list = methods.joined(separator: ", ")
      return Problem(
        status: .methodNotAllowed, detail: "\(path) does not support \(request.method)",
        hint: "The allowed methods are \(list).",
        headers: [.allow: list])
    }
    // Do not suggest the files of the web UI.
    let paths = routes.map(\.path).filter { !$0.hasPrefix(WebUIRoutes.folder) }
      .reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
    let usual = Self.usualPaths[path.lowercased()].flatMap { paths.contains($0) ? "Did you mean \($0)? " : nil }
    let guess = usual ?? Spelling.suggestion(for: path, among: paths)
    return .notFound("there is no \(path)", hint: "\(guess)/openapi.json lists the paths.")
  }
}
