internal import APNSMockRules
internal import APNSMockDevices
internal import Hummingbird
internal import MockAPNS
internal import NIOCore
internal import APNSMockNotation

/// Routes that load, check and save fixtures: apps, devices and channels.
struct FixtureRoutes: Sendable {
  let state: ServerState

  var routes: [Route] {
    [.get("/fixtures", save), .put("/fixtures", load), .post("/fixtures/lint", lint)]
  }

  /// The maximum size of fixtures in a request, in bytes.
  private static let bodyLimit = 64 << 20
  /// How to repair a request over the limit.
  private static let bodyLimitHint = "Load the file at the start: apns-mock serve --fixtures FILE."

  private func save(_ request: Request, _ context: AdminContext) throws -> Response {
    let eventLoop = DisconnectCancellation.channel?.eventLoop
    let fixtures = try state.fixtureWriter()
    return Response(
      status: .ok, headers: [.contentType: JSONBody.type],
      body: ResponseBody { writer in
        var save = fixtures
        while let piece = try await QueryExecutor.step({ save.next() }) {
          if !piece.isEmpty { try await writer.write(ByteBuffer(bytes: piece), atPaceOf: eventLoop) }
        }
        try await writer.finish(nil)
      })
  }

  private func load(_ request: Request, _ context: AdminContext) async throws -> Response {
    let document = try await Self.document(in: request)
    let contents = try await QueryExecutor.run { [state] in
      try state.load([document], limits: FixtureReader.clientText)
    }
    return .json { contents.write(to: &$0) }
  }

  private func lint(_ request: Request, _ context: AdminContext) async throws -> Response {
    let document = try await Self.document(in: request)
    let configuration = state.configuration
    let contents = try await QueryExecutor.run {
      try FixtureReader(defaults: FixtureDefaults(configuration), limits: FixtureReader.clientText)
        .lint([document], maxDevices: configuration.maxDevices)
    }
    return .json { writer in
      writer.member("valid", true)
      writer.arrayMember("problems") { _ in }
      contents.write(to: &writer)
    }
  }

  private static func document(in request: Request) async throws -> FixtureDocument {
    let bytes = try await RequestBody.bytes(of: request, limit: bodyLimit, ifLarger: bodyLimitHint)
    guard bytes.readableBytes > 0 else {
      throw Problem.badRequest(
        "the body is empty", hint: "Send \(DocumentBody.types[0]) or \(DocumentBody.types[1]).")
    }
    try RequestBody.type(of: request, among: DocumentBody.types)
    return FixtureDocument(name: "fixtures", text: Array(bytes.readableBytesView))
  }
}

extension FixtureReader.Contents {
  /// Writes the numbers of apps, devices and channels as members.
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("apps", apps.count)
    writer.member("devices", devices)
    writer.member("channels", channels.count)
  }
}
