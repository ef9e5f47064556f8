internal import APNSMockRules
internal import APNSMockDevices
internal import APNSMockFaultModel
internal import APNSMockFaults
internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS
internal import NIOCore
internal import APNSMockNotation

/// Health checks: `/livez` and `/readyz`. `AdmissionHandler` answers most of them; the routes answer those that must wait
/// for an earlier response on their connection.
struct HealthRoutes: Sendable {
  static let paths: Set = ["/livez", "/readyz"]

  let phase: @Sendable () -> ServerState.Phase
  /// Returns what is wrong with the store of the inbox; nil if nothing is.
  let storeProblem: @Sendable () -> String?

  var routes: [Route] {
    Self.paths.sorted().map { path in
      .get(path) { _, _ in
        guard let (status, json) = answer(to: path) else { throw HTTPError(.notFound) }
        return Response(
          status: status, headers: [.contentType: JSONBody.type],
          body: ResponseBody(byteBuffer: ByteBuffer(bytes: json)))
      }
    }
  }

  /// Returns the answer to a health check, in JSON; nil for another path.
  func answer(to path: String) -> (status: HTTPResponse.Status, json: [UInt8])? {
    var writer = JSONWriter()
    switch path {
    case "/livez":
      writer.object { $0.member("status", "live") }
      return (.ok, writer.bytes)
    case "/readyz":
      let phase = phase()
      let problem = storeProblem()
      writer.object { writer in
        writer.member("status", problem == nil ? phase.name : "failing")
        if let problem { writer.member("problem", problem) }
      }
      return (phase == .ready && problem == nil ? .ok : .serviceUnavailable, writer.bytes)
    default: return nil
    }
  }
}

/// Routes outside `/api/v1`: the schemas of files, and `/`, which is the web UI for browsers and a welcome text for other
/// clients.
struct RootRoutes: Sendable {
  /// Returns the welcome text; the parameter is the host and port that the client used.
  let welcome: @Sendable (_ host: String) -> String
  /// Returns the page for browsers.
  var page: @Sendable () async throws -> Response = { try WebUIRoutes.page() }

  var routes: [Route] {
    [
      .get("/") { request, _ in
        WebUIRoutes.isAccepted(by: request)
          ? try await page() : .text(welcome(request.head.authority ?? "localhost"))
      },
      .get(ProfileSchema.path) { _, _ in .text(ProfileSchema.text, type: "application/schema+json") },
      .get(FixtureSchema.path) { _, _ in .text(FixtureSchema.text, type: "application/schema+json") },
    ]
  }

  /// Returns the routes of the CA certificates.
  static func authorities(of state: ServerState) -> [Route] {
    let type = "application/x-pem-file"
    return [
      .get("/ca.pem") { _, _ in .text(state.certificates.caPEM, type: type) },
      .get("/ca-next.pem") { _, _ in
        guard let pem = state.certificates.nextCAPEM else {
          throw Problem.notFound(
            "there is no next CA", hint: "Run apns-mock certs in a folder that can be written, and restart the server.")
        }
        return .text(pem, type: type)
      },
    ]
  }

  /// Returns the welcome text of a running server.
  static func welcome(to state: ServerState, version: String, host: String) -> String {
    let admin = "http://\(host)"
    let apns = state.apnsAddresses.map { "https://\($0)" }.joined(separator: "  ")
    let example = state.apnsAddresses.first.map { MockServer.Endpoint(host: "localhost", port: $0.port) }
    return """
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

      """
  }
}
