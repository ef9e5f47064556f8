internal import Hummingbird
internal import Inbox
internal import MockAPNS
internal import Notation

/// Routes for a read-only view of an export.
struct ViewRoutes: Sendable {
  let state: ServerState
  let version: String
  /// The export's name for display.
  let file: String

  var routes: [Route] { [.get("/status", status)] }

  /// Returns whether a route is read-only.
  static func reads(_ route: Route) -> Bool {
    route.method == .get || (route.method == .post && route.path == "/verify")
  }

  /// Checks that a request is read-only.
  ///
  /// - Throws: `Problem` if it would change something.
  func check(_ request: Request, among routes: [Route]) throws(Problem) {
    let method = request.method
    guard method != .get, method != .head,
      !routes.contains(where: { $0.method == method && $0.matches(request.uri.path) })
    else { return }
    throw .forbidden(
      "this is a view of \(file), read only",
      hint: "To receive pushes and change state, start a server: apns-mock serve.")
  }

  /// Returns the status as a server does, with null for values that an export does not contain.
  private func status(_ request: Request, _ context: BasicRequestContext) -> Response {
    let inbox = state.inbox.snapshot()
    return .json { writer in
      writer.member("version", version)
      writer.member("phase", state.phase.name)
      writer.member("view", file)
      writer.member("uptime", WrittenDuration.text(.milliseconds(state.uptime / .milliseconds(1))))
      for name in ["seed", "environment", "rules", "profile"] { writer.nullMember(name) }
      writer.objectMember("addresses") { writer in
        writer.arrayMember("apns") { _ in }
        writer.name("admin")
        if let address = state.adminAddress { writer.object { address.write(to: &$0) } } else { writer.null() }
      }
      writer.objectMember("inbox") { ServerRoutes.write(inbox, to: &$0) }
      writer.member("warnings", [String]())
    }
  }
}
