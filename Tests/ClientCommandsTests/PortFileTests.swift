import APNSMockRules
import Foundation
import MockAPNS
import APNSMockTestSupport
import Testing

@testable import APNSMockClientCommands

/// The file that a ready server writes for scripts.
@Suite struct PortFileTests {
  private static let example = PortFile(
    pid: 812, apns: [listener(40123)], admin: MockServer.Endpoint(host: "127.0.0.1", port: 40124),
    ca: "/c/ca.pem", keyID: "MOCKKEY001", teamID: "MOCKTEAM01", key: "/c/AuthKey_MOCKKEY001.p8", environment: .sandbox,
    seed: 918_273, adminToken: nil)

  private static func listener(
    _ port: Int, host: String = "127.0.0.1", _ environment: PushEnvironment = .sandbox
  ) -> PortFile.Listener {
    PortFile.Listener(endpoint: MockServer.Endpoint(host: host, port: port), environment: environment)
  }

  @Test func portFileContentIsAsDocumented() {
    #expect(
      String(decoding: Self.example.json, as: UTF8.self) == """
        {"pid":812,"role":"active","apns":[{"host":"127.0.0.1","port":40123,"environment":"sandbox"}],"apns_plain":[],"proxy":null,"manage":[],\
        "admin":{"host":"127.0.0.1","port":40124},"ca":"/c/ca.pem","key_id":"MOCKKEY001","team_id":"MOCKTEAM01","key":"/c/AuthKey_MOCKKEY001.p8",\
        "environment":"sandbox","seed":918273,"admin_token":null}

        """)
  }

  @Test(arguments: [PortFile.Role.active, .standby])
  func portFileRoundTrips(_ role: PortFile.Role) throws {
    var file = Self.example
    file.role = role
    file.apns.append(Self.listener(2, host: "::1", .production))
    file.apnsPlain = [Self.listener(3), Self.listener(4, host: "::1", .production)]
    file.proxy = Self.listener(5, .production)
    file.manage = [Self.listener(6), Self.listener(7, .production)]
    file.environment = .production
    // The seed of a standby is unknown.
    file.seed = role == .active ? .max : 0
    file.adminToken = "s3cret \"quoted\""
    #expect(try PortFile(json: file.json) == file)
  }

  @Test func listenersOfOlderPortFilesHaveTheServersEnvironment() throws {
    var file = Self.example
    file.environment = .production
    let older = String(decoding: file.json, as: UTF8.self).replacing(#","environment":"sandbox""#, with: "")
      .replacing(#","manage":[]"#, with: "")
    #expect(try PortFile(json: Array(older.utf8)).apns == [Self.listener(40123, .production)])
  }

  /// A client that uses all addresses of the variable stays in one environment.
  @Test func variableNamesListenersOfTheFirstEnvironment() {
    var file = Self.example
    file.apns = [Self.listener(1), Self.listener(2, .production), Self.listener(3)]
    #expect(file.variables.first { $0.name == "APNS_MOCK_APNS" }?.value == "127.0.0.1:1,127.0.0.1:3")
    #expect(file.variables.contains { $0.name == "APNS_MOCK_MANAGE" && $0.value == nil })
  }

  @Test func portFileIsPrivateAtomicAndRemoved() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/ports.json"
    let written = try WrittenPortFile(Self.example, at: path)
    #expect(try Files.contents(of: path) == Self.example.json)
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
    #expect(mode?.intValue == 0o600)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["ports.json"], "no temporary file is left")
    written.remove()
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test func fileOfALaterServerIsKept() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/ports.json"
    let first = try WrittenPortFile(Self.example, at: path)
    var later = Self.example
    later.pid = 813
    _ = try WrittenPortFile(later, at: path)
    first.remove()
    #expect(try PortFile(json: Files.contents(of: path)).pid == 813)
  }

  @Test func missingFolderIsAUsageError() {
    let error = #expect(throws: CommandFailure.self) { try WrittenPortFile(Self.example, at: "/nowhere/at/all/p.json") }
    #expect(error?.status == .usage)
    #expect(error?.description.contains("--port-file: /nowhere/at/all/p.json: cannot be written: No such file") == true)
  }
}
