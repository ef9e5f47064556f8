internal import APNSMockDevices
internal import APNSMockRules
internal import APNSMockFaultModel
internal import APNSMockHTTPMessage
internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS
internal import APNSMockNotation
internal import APNSMockTLSEngine

/// The push to send.
struct SendRequest {
  var token = ""
  var headers: [String: String?] = [:]
  /// The payload if it is a string, which is sent unchanged and may be invalid JSON.
  var payload: [UInt8]?
  var isDryRun = false

  static let schema = MapSchema(
    "SendRequest", SendRequest(),
    .required("token", \.token, .text, example: "ab12, in hexadecimal", "The device token to push to."),
    .defaulted("headers", \.headers, .scalars, default: "none", "Header fields; absent ones have APNs' defaults."),
    .custom(
      "payload", \.payload, .either(.scalar, .json),
      "The payload: a string is sent unchanged, any other value as JSON.",
      parse: { _, node, request in
        if case .scalar(let scalar) = node.content, scalar.isString { request.payload = Array(scalar.text.utf8) }
        return true
      }),
    .defaulted("dry_run", \.isDryRun, .flag, "Whether the push is only validated."))
}

/// The route that sends a test push through the APNs listener, for users of the web UI without a provider.
struct SendRoutes: Sendable {
  let state: ServerState
  /// Each test push needs a connection with a TLS handshake of its own.
  private let connections = AsyncSemaphore(64)

  init(state: ServerState) { self.state = state }

  var routes: [Route] { [.post("/send", send)] }

  /// The maximum number of header fields of a test push.
  private static let maxHeaders = 100

  private func send(_ request: Request, _ context: AdminContext) async throws -> Response {
    let json = try await JSONBody(request)
    let body = try json.parse(SendRequest.schema.parse)
    let headers = try headers(body.headers.compactMapValues(\.self))
    guard let listener = state.apnsAddresses.first else {
      throw Problem(status: .serviceUnavailable, detail: "the server does not listen yet", hint: "Try again soon.")
    }
    let client = PushClient(
      endpoint: listener.reachable, serverName: "localhost", authorities: state.certificates.authorityPaths)
    let push = PushClient.Push(
      deviceToken: try Self.checked(body.token), headers: headers, payload: body.payload ?? json.json("payload") ?? [])
    if body.isDryRun { return try prediction(of: push) }
    do {
      return Self.response(try await connections.withPermit { try await client.send([push]).first })
    } catch let error as PushClientError {
      // A fault may have ended the connection, which is a valid outcome.
      return Self.response(.disconnected(reason: "\(error)"))
    }
  }

  // MARK: - Request

  /// Returns a token that fits into a request path; it need not be a valid device token.
  private static func checked(_ token: String) throws(Problem) -> String {
    guard token.utf8.count <= 1000, token.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
      throw .badRequest("token has spaces or other characters than ASCII", hint: "Use the device token in hexadecimal.")
    }
    return token
  }

  /// Returns the given header fields, and a new provider token unless they contain `authorization`.
  private func headers(_ given: [String: String]) throws -> [(String, String)] {
    guard given.count <= Self.maxHeaders else {
      throw Problem.badRequest("headers has \(given.count) members", hint: "At most \(Self.maxHeaders) are allowed.")
    }
    var headers: [(String, String)] = []
    for (name, value) in given.sorted(by: { $0.key < $1.key }) {
      guard Self.isName(name), value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else {
        throw Problem.badRequest(
          "headers.\(name.prefix(80)) is not a header field",
          hint: "A name has letters, digits and hyphens, a value no control characters.")
      }
      headers.append((name.lowercased(), value))
    }
    if !headers.contains(where: { $0.0 == "authorization" }) {
      headers.insert(("authorization", "bearer \(try providerToken())"), at: 0)
    }
    return headers
  }

  private static func isName(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.count <= 100
      && name.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
          || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
      }
  }

  private func providerToken() throws -> String {
    let token = ProviderTokenRequest(
      keyID: CertificateFolder.keyID, teamID: CertificateFolder.teamID, issuedAt: state.clock.now / 1000)
    do {
      return try token.signed(with: ES256PrivateKey(pem: WholeFile(path: state.certificates.providerKeyPath).text()))
    } catch {
      throw Problem(
        status: .conflict, detail: "the provider key is invalid: \(error)",
        hint: "Create a key with apns-mock certs, or specify authorization in headers.")
    }
  }

  // MARK: - Dry run

  private static let connectionFields: Set = [
    "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade",
  ]

  /// Returns what would happen to a push that is not sent.
  ///
  /// - Throws: `Problem` if HTTP/2 does not allow the header fields (RFC 9113 section 8.2.2).
  private func prediction(of push: PushClient.Push) throws(Problem) -> Response {
    for (name, value) in push.headers where Self.connectionFields.contains(name) || name == "te" && value != "trailers"
    {
      throw .badRequest(
        "headers.\(name) belongs to one connection of HTTP/1.1, and APNs resets a stream with it", hint: "Remove it.")
    }
    let fields =
      [
        (":method", "POST"), (":scheme", "https"), (":path", "/3/device/\(push.deviceToken)"),
        (":authority", "localhost"),
      ] + push.headers
    let request = ServerState.receivedRequest(fields, body: push.payload)
    let prediction = state.predict(request)
    return .json { writer in
      writer.member("outcome", "not_sent")
      prediction.verdict.writeMembers(to: &writer) {
        request.headers.bytes.withUnsafeBytes { prediction.verdict.detail(headers: $0, bodySize: request.bodySize) }
      }
      writer.objectMember("size") { writer in
        writer.member("bytes", request.bodySize)
        writer.member("limit", prediction.verdict.facts.payloadLimit)
      }
      Self.write(prediction, to: &writer)
      let problem = JSONText.problem(in: push.payload)
      writer.member("payload_error", problem.map { "\($0)" })
    }
  }

  private static func write(_ prediction: PushPrediction, to writer: inout JSONWriter) {
    writer.arrayMember("rules") { writer in
      for injection in prediction.injections {
        writer.object { writer in
          writer.member("rule", injection.rule)
          writer.member("profile", injection.profile)
          writer.member("action", injection.action.name.rawValue)
        }
      }
    }
    writer.objectMember("response") { writer in
      writer.member("ending", prediction.ending.rawValue)
      writer.member("status", prediction.response?.status)
      writer.member("reason", prediction.response?.reason)
      writer.member("delay_ms", prediction.delay.milliseconds)
    }
    writer.member("accepted", prediction.isAccepted)
    writer.member("delivery", prediction.delivery?.state.text)
    writer.member("held_by", prediction.delivery?.cause?.rawValue)
  }

  // MARK: - Outcome

  private static func response(_ outcome: PushClient.Outcome?) -> Response {
    .json { writer in
      switch outcome {
      case .response(let response):
        writer.member("outcome", "answered")
        writer.member("status", response.status)
        writer.member("reason", reason(in: response.body))
        writer.member("apns_id", response.headers["apns-id"])
      case .reset(let code):
        writer.member("outcome", "reset")
        writer.member("message", "the stream was reset with HTTP/2 error code \(code)")
      case .disconnected(let reason):
        writer.member("outcome", "disconnected")
        writer.member("message", reason)
      case nil:
        writer.member("outcome", "disconnected")
        writer.member("message", "the connection ended")
      }
    }
  }

  private static func reason(in body: [UInt8]) -> String? {
    guard case .text(let reason)? = body.withUnsafeBytes({ JSONPointer("/reason")?.value(in: $0) }) else {
      return nil
    }
    return reason
  }
}
