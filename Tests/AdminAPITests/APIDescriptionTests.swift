import Foundation
import APNSMockPushQuery
import APNSMockTestSupport
import Testing

@testable import APNSMockAdminAPI

/// The API description contains exactly the existing routes, and the responses that they share.
@Suite struct APIDescriptionTests {
  private static func document() throws -> [String: Any] {
    let json = APIDescription(version: TestServer.version).json
    return try #require(JSONSerialization.jsonObject(with: Data(json)) as? [String: Any])
  }

  @Test func describesEveryRouteAndNothingElse() async throws {
    try await TestServer.run { server in
      // The files of the web UI are no part of the API.
      let all = AdminRoutes(state: server.state, version: TestServer.version).routes
      let routes = all.filter { !$0.path.hasPrefix(WebUIRoutes.folder) }.map { route in
        let parts = route.path.split(separator: "/", omittingEmptySubsequences: false)
          .map { $0.hasPrefix(":") ? "{\($0.dropFirst())}" : String($0) }
        return "\(route.method) \(parts.joined(separator: "/"))"
      }
      let paths = try #require(Self.document()["paths"] as? [String: [String: Any]])
      let described = paths.flatMap { path, item in
        item.keys.filter { $0 != "parameters" }.map { "\($0.uppercased()) \(path)" }
      }
      #expect(described.sorted() == routes.sorted())
    }
  }

  @Test func listsEveryKindOfProblem() throws {
    let components = try Self.document()["components"] as? [String: [String: Any]]
    let problem = try #require(components?["schemas"]?["Problem"] as? [String: Any])
    let type = (problem["properties"] as? [String: [String: Any]])?["type"]
    #expect(type?["enum"] as? [String] == Problem.Kind.allCases.map { "apns-mock:" + $0.rawValue })
  }

  @Test func namesEveryFieldOfTheFilter() throws {
    let components = try Self.document()["components"] as? [String: [String: Any]]
    let filter = try #require(components?["parameters"]?["Filter"] as? [String: Any])
    let fields = try #require((filter["schema"] as? [String: Any])?["properties"] as? [String: [String: Any]])
    #expect(Set(QueryField.allCases.map(\.rawValue)).subtracting(fields.keys).isEmpty)
    #expect(fields["is"]?["enum"] as? [String] == PushState.allCases.map(\.rawValue))
  }

  @Test func hasTheVersion() throws {
    let info = try Self.document()["info"] as? [String: Any]
    #expect(info?["version"] as? String == TestServer.version)
  }

  @Test func everyOperationDocumentsItsResponses() throws {
    let paths = try #require(Self.document()["paths"] as? [String: [String: Any]])
    func responses(_ method: String, _ path: String) -> Set<String> {
      let operation = paths[path]?[method] as? [String: Any]
      return Set((operation?["responses"] as? [String: Any] ?? [:]).keys)
    }
    #expect(responses("get", "/livez") == ["200", "500"])
    #expect(responses("get", "/ca.pem") == ["200", "403", "500", "503"])
    #expect(responses("get", "/api/v1/clock") == ["200", "401", "403", "500", "503"])
    #expect(responses("put", "/api/v1/clock") == ["200", "400", "401", "403", "413", "415", "500", "503"])
  }

  @Test func isServed() async throws {
    try await TestServer.run { server in
      let response = await server.client.get("/openapi.json")
      #expect(response.headers["content-type"] == "application/json")
      #expect(response.body == APIDescription(version: TestServer.version).json)
    }
  }
}
