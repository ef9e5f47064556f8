internal import APNSRules
internal import Faults
internal import Hummingbird
internal import MockAPNS
internal import Notation

/// Routes outside `/api/v1`: health checks, the CA certificate, the profile schema, and the welcome text for clients
/// other than browsers.
struct OutsideRoutes: Sendable {
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
