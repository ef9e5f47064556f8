internal import APNSRules
internal import FaultModel
internal import Faults
internal import Hummingbird
internal import Inbox
internal import MockAPNS
internal import Notation

/// Routes outside `/api/v1`: health checks, the CA certificate, the profile schema, and the welcome text for clients
/// other than browsers.
struct HealthRoutes: Sendable {
  let state: ServerState
  let version: String

  var routes: [Route] {
    let all: [Route] = [
      .get("/livez", live), .get("/readyz", ready), .get("/", welcome), .get(ProfileSchema.path, schema),
    ]
    // A view of an export accepts no pushes, so its CA need not be trusted.
    return state.viewedFile == nil ? all + [.get("/ca.pem", authority)] : all
  }

  private func live(_ request: Request, _ context: BasicRequestContext) -> Response {
    .json { $0.member("status", "live") }
  }

  private func ready(_ request: Request, _ context: BasicRequestContext) -> Response {
    let phase = state.phase
    return .json(status: phase == .ready ? .ok : .serviceUnavailable) { $0.member("status", phase.name) }
  }

  private func authority(_ request: Request, _ context: BasicRequestContext) -> Response {
    .text(state.certificates.caPEM, type: "application/x-pem-file")
  }

  private func schema(_ request: Request, _ context: BasicRequestContext) -> Response {
    .text(ProfileSchema.text, type: "application/schema+json")
  }

  /// Returns the web UI to browsers, and a welcome text to all other clients.
  private func welcome(_ request: Request, _ context: BasicRequestContext) throws -> Response {
    if PageRoutes.isWanted(by: request) { return try PageRoutes.page() }
    if let file = state.viewedFile { return .text(Self.words(on: file, version: version)) }
    let admin = "http://\(request.head.authority ?? "localhost")"
    let apns = state.apnsAddresses.map { "https://\($0)" }.joined(separator: "  ")
    let example = state.apnsAddresses.first.map { Endpoint(host: "localhost", port: $0.port) }
    return .text(
      """
      apns-mock \(version), a mock of Apple's push service (\(state.configuration.environment.rawValue))

      Providers connect to   \(apns)   (TLS, HTTP/2)
      CA to trust            \(admin)/ca.pem

      To send a push:

        apns-mock send \(String(repeating: "ab12", count: 16)) --topic com.example.app

      or, with any HTTP/2 client and a provider token:

        curl -s \(admin)/ca.pem -o ca.pem
        curl --http2 --cacert ca.pem -H "authorization: bearer $(apns-mock token provider)" \\
          -H "apns-topic: com.example.app" -H "apns-push-type: alert" -d '{"aps":{"alert":"Hello"}}' \\
          https://\(example?.description ?? "localhost:2197")/3/device/\(String(repeating: "ab12", count: 16))

      To list the pushes:

        curl \(admin)/api/v1/pushes          all pushes, with the reason for each response
        curl \(admin)/api/v1/pushes?status=400
        curl \(admin)/api/v1/status

      """)
  }

  private static func words(on file: String, version: String) -> String {
    """
    apns-mock \(version), a read-only view of \(file)

      /api/v1/pushes              all pushes, with the reason for each response
      /api/v1/pushes?status=400
      /api/v1/status

    """
  }
}

/// Routes for a read-only view of an export.
struct ReadOnlyRoutes: Sendable {
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
      writer.member("uptime", DurationFormat.text(.milliseconds(state.uptime / .milliseconds(1))))
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
