import APNSRules
import Foundation
import HTTPMessage
import MockAPNS
import TLSEngine

/// A server on a free port with a certificate folder of its own, for one test.
struct TestServer {
  let server: MockServer
  let folder: String

  /// Runs `body` with a new server and stops it afterwards.
  static func run(
    _ change: (inout Configuration) -> Void = { _ in }, _ body: (TestServer) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "apns-mock-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: folder) }
    var configuration = Configuration()
    configuration.apns = [Endpoint(host: "127.0.0.1", port: 0)]
    configuration.certificates = folder
    configuration.threads = 1
    configuration.seed = 7
    change(&configuration)
    let server = try await MockServer.start(configuration)
    do {
      try await body(TestServer(server: server, folder: folder))
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  /// Returns a client that trusts the server, with its provider certificate on request.
  func client(certificate: Bool = false) -> PushClient {
    PushClient(
      endpoint: server.addresses[0], authorities: ["\(folder)/ca.pem"],
      certificate: certificate ? (chain: "\(folder)/client.pem", key: "\(folder)/client-key.pem") : nil)
  }

  /// Returns a provider token signed with the folder's own key, issued `age` seconds before the server's current
  /// time.
  func providerToken(age: Int64 = 0) throws -> String {
    let pem = try String(contentsOfFile: "\(folder)/AuthKey_MOCKKEY001.p8", encoding: .utf8)
    let issuedAt = server.state.clock.now / 1000 - age
    func encoded(_ bytes: [UInt8]) -> String {
      Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
    let signed =
      encoded(Array(#"{"alg":"ES256","kid":"MOCKKEY001"}"#.utf8)) + "."
      + encoded(Array(#"{"iss":"MOCKTEAM01","iat":\#(issuedAt)}"#.utf8))
    return signed + "." + encoded(try ES256PrivateKey(pem: pem).sign(Array(signed.utf8)))
  }

  static let deviceToken = String(repeating: "ab", count: 32)

  /// Returns a push that is accepted, unless `headers` change that.
  func push(
    token: String?, deviceToken: String = TestServer.deviceToken, _ headers: [String: String] = [:],
    payload: String = #"{"aps":{"alert":"Hello"}}"#
  ) -> PushClient.Push {
    var all = ["apns-topic": "com.example.app", "apns-push-type": "alert"]
    if let token { all["authorization"] = "bearer \(token)" }
    all.merge(headers) { _, new in new }
    return PushClient.Push(
      deviceToken: deviceToken, headers: all.sorted { $0.key < $1.key }.map { ($0.key, $0.value) },
      payload: Array(payload.utf8))
  }

  /// Sends one push on a connection of its own and returns the response, or nil if there was none.
  func send(_ push: PushClient.Push, certificate: Bool = false) async throws -> HTTPResponse? {
    guard case .answered(let response)? = try await client(certificate: certificate).send([push]).first else {
      return nil
    }
    return response
  }
}

extension HTTPResponse {
  /// The body as text.
  var text: String { String(decoding: body, as: UTF8.self) }
}
