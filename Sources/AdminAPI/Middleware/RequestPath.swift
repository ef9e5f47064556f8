internal import Hummingbird
internal import APNSMockNotation

/// The normal form of the path of a request.
enum RequestPath {
  /// Returns the one spelling of a path that access rules and router use: without empty components, which the router ignores,
  /// without dot components, and with unreserved characters and colons decoded (RFC 3986 sections 6.2.2 and 3.3): names such as
  /// `load_1:4711` have a colon. Other percent escapes stay as they are, so that `%2F` separates no components. Begins with a slash
  /// and, unless it is `/`, does not end with one.
  static func normalized(_ path: String) -> String {
    var components: [String] = []
    for part in path.split(separator: "/") {
      switch PercentEncoding.decodingUnreserved(part) {
      case ".": break
      case "..": _ = components.popLast()
      case let component: components.append(component.replacing("%3A", with: ":").replacing("%3a", with: ":"))
      }
    }
    return "/" + components.joined(separator: "/")
  }

  /// Gives each request its normal path before anything else sees it.
  struct Normalizing<Next: HTTPResponder<AdminContext>>: HTTPResponder {
    let next: Next

    func respond(to request: Request, context: AdminContext) async throws -> Response {
      let path = normalized(request.uri.path)
      guard path != request.uri.path else { return try await next.respond(to: request, context: context) }
      var head = request.head
      head.path = path + (request.uri.query.map { "?" + $0 } ?? "")
      return try await next.respond(to: Request(head: head, body: request.body), context: context)
    }
  }
}
