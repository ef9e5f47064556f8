import APNSMockRules
import ArgumentParser
import MockAPNS
import HTTPTypes
import APNSMockTestSupport
import Testing

@testable import APNSMockClientCommands

/// How client commands find a server: port file, its variable, `--admin`, its variable, the default.
@Suite struct ServerLocationTests {
  private static func portFile(admin port: Int, token: String? = nil, in folder: TemporaryFolder) throws -> String {
    let file = PortFile(
      pid: 1, apns: [PortFile.Listener(endpoint: MockServer.Endpoint(host: "127.0.0.1", port: 1))],
      admin: MockServer.Endpoint(host: "127.0.0.1", port: port),
      ca: "/c/ca.pem",
      keyID: "K", teamID: "T", key: "/c/k.p8", environment: .sandbox, seed: 1, adminToken: token)
    return try folder.file("\(port).json", String(decoding: file.json, as: UTF8.self))
  }

  @Test(arguments: [
    (flags: ["port"], variables: ["port", "admin"], result: 11),
    (flags: ["admin"], variables: ["port", "admin"], result: 21),
    (flags: [], variables: ["port", "admin"], result: 12),
    (flags: ["port", "admin"], variables: [], result: 11), (flags: ["admin"], variables: ["admin"], result: 21),
    (flags: [], variables: ["admin"], result: 22), (flags: [], variables: [], result: 8197),
  ])
  func serverAddressPrecedence(flags: [String], variables: [String], result: Int) throws {
    let folder = try TemporaryFolder()
    var arguments: [String] = []
    if flags.contains("port") { arguments += ["--port-file", try Self.portFile(admin: 11, in: folder)] }
    if flags.contains("admin") { arguments += ["--admin", "127.0.0.1:21"] }
    var environment: [String: String] = [:]
    if variables.contains("port") { environment["APNS_MOCK_PORT_FILE"] = try Self.portFile(admin: 12, in: folder) }
    if variables.contains("admin") { environment["APNS_MOCK_ADMIN"] = "127.0.0.1:22" }
    let server = try ServerLocation(ServerFlags.parse(arguments), environment: environment)
    #expect(server.client.endpoint == MockServer.Endpoint(host: "127.0.0.1", port: result))
  }

  @Test func tokenIsReadFromThePortFile() throws {
    let folder = try TemporaryFolder()
    let path = try Self.portFile(admin: 5, token: "written", in: folder)
    let server = try ServerLocation(
      ServerFlags.parse(["--port-file", path]), environment: ["APNS_MOCK_ADMIN_TOKEN": "other"])
    #expect(server.client.token == "written")
  }

  @Test func tokenIsReadFromTheEnvironmentWithoutAPortFile() throws {
    let folder = try TemporaryFolder()
    let path = try folder.file("token", "from-file\n")
    let flags = try ServerFlags.parse([])
    #expect(try ServerLocation(flags, environment: [:]).client.token == nil)
    #expect(try ServerLocation(flags, environment: ["APNS_MOCK_ADMIN_TOKEN": "direct"]).client.token == "direct")
    #expect(try ServerLocation(flags, environment: ["APNS_MOCK_ADMIN_TOKEN_FILE": path]).client.token == "from-file")
  }

  @Test(arguments: [("0.0.0.0:5", "127.0.0.1:5"), ("[::]:5", "[::1]:5"), ("localhost:5", "localhost:5")])
  func wildcardListenerIsReachedByLoopback(_ admin: String, _ reached: String) throws {
    let server = try ServerLocation(ServerFlags.parse(["--admin", admin]), environment: [:])
    #expect(server.client.endpoint.description == reached)
  }

  @Test func missingPortFileMeansNoServer() throws {
    let error = try #require(throws: CommandFailure.self) {
      try ServerLocation(ServerFlags.parse(["--port-file", "/nowhere/p.json"]), environment: [:])
    }
    #expect(error.status == .unreachable)
    #expect(error.description.contains("/nowhere/p.json"))
    #expect(error.description.contains("apns-mock serve --port-file /nowhere/p.json"))
  }

  @Test(arguments: ["", "{}", "not JSON", #"{"pid": "x"}"#])
  func invalidPortFileIsAUsageError(_ text: String) throws {
    let folder = try TemporaryFolder()
    let path = try folder.file("p.json", text)
    let error = try #require(throws: CommandFailure.self) {
      try ServerLocation(ServerFlags.parse([]), environment: ["APNS_MOCK_PORT_FILE": path])
    }
    #expect(error.status == .usage)
    #expect(error.description == "APNS_MOCK_PORT_FILE: \(path) is not a port file of apns-mock")
  }

  @Test(arguments: [
    (["--admin", "x"], [:], "--admin: \"x\""), ([], ["APNS_MOCK_ADMIN": "y"], "APNS_MOCK_ADMIN: \"y\""),
  ])
  func invalidAddressNamesItsSource(_ arguments: [String], _ environment: [String: String], _ prefix: String) throws {
    let error = try #require(throws: CommandFailure.self) {
      try ServerLocation(ServerFlags.parse(arguments), environment: environment)
    }
    #expect(error.status == .usage)
    #expect(error.description.hasPrefix(prefix))
  }

  @Test func unreachableServerErrorIsOneLine() async throws {
    // Port 1 is tcpmux, and nothing listens on it here.
    let server = try ServerLocation(ServerFlags.parse(["--admin", "127.0.0.1:1"]), environment: [:])
    let error = try await #require(throws: CommandFailure.self) { try await server.client.request(.get, "/readyz") }
    #expect(error.status == .unreachable)
    #expect(error.description.hasPrefix("no apns-mock responds on 127.0.0.1:1: connection refused; start one with"))
    #expect(!error.description.contains("\n"))
  }
}
