import AdminAPI
import Foundation
import MockAPNS
import Page
import TestSupport
import Testing

/// The web UI and its files.
@Suite struct PageRouteTests {
  @Test(arguments: [
    ("text/html", "text/html; charset=utf-8"),
    ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8"),
    ("TEXT/HTML", "text/html; charset=utf-8"), ("*/*", "text/plain; charset=utf-8"),
    ("application/json", "text/plain; charset=utf-8"),
  ])
  func browsersGetThePageAndOthersText(accept: String, type: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.get("/?q=status:400", [("accept", accept)])
      #expect(answer.status == 200)
      #expect(answer.headers["content-type"] == type)
      #expect(answer.headers["vary"] == (type.hasPrefix("text/html") ? "accept" : nil))
    }
  }

  @Test func everyFileHasItsTypeAndAStrictPolicy() async throws {
    let types = ["html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"]
    try await TestServer.run { server in
      for (path, bytes) in PageFiles.all {
        let answer = await server.client.get("/page/\(path)")
        #expect(answer.status == 200, "\(path)")
        #expect(Array(answer.text.utf8) == bytes, "\(path)")
        let type = try #require(types[String(path.split(separator: ".").last ?? "")])
        #expect(answer.headers["content-type"]?.hasPrefix(type) == true, "\(path)")
        let policy = try #require(answer.headers["content-security-policy"])
        #expect(policy.hasPrefix("default-src 'none'; script-src 'self';"))
        #expect(policy.contains("base-uri 'none'; form-action 'none'; frame-ancestors 'none'"))
        #expect(!policy.contains("unsafe"))
      }
    }
  }

  /// Every file that a page file loads exists, so that nothing is missing offline and nothing is loaded from another
  /// server.
  @Test func pageReferencesOnlyExistingFiles() throws {
    let paths = Set(PageFiles.all.map(\.path))
    for (path, bytes) in PageFiles.all {
      let text = String(decoding: bytes, as: UTF8.self)
      let folder = path.split(separator: "/").dropLast()
      for match in text.matches(of: #/(?:from|import) "(\.{1,2}/[^"]+)"/#) {
        var parts = Array(folder)
        for part in match.output.1.split(separator: "/") where part != "." {
          if part == ".." { parts.removeLast() } else { parts.append(part) }
        }
        #expect(paths.contains(parts.joined(separator: "/")), "\(path) imports \(match.output.1)")
      }
      for match in text.matches(of: #/(?:src|href)="\/page\/([^"]+)"/#) {
        #expect(paths.contains(String(match.output.1)), "\(path) names \(match.output.1)")
      }
      #expect(!text.contains("innerHTML") && !text.contains("eval("), "\(path)")
    }
  }

  @Test(arguments: [
    ("/page/modules/mian.js", "/page/modules/main.js"), ("/page/index.htm", "/page/index.html"),
    ("/page/../../etc/passwd", "/openapi.json"), ("/page/%2e%2e/%2e%2e/etc/passwd", "/openapi.json"),
    ("/page/a/b/c/d", "/openapi.json"), ("/page/", "/openapi.json"), ("/page/..%2fREADME.md", "Open /"),
  ])
  func otherFilesAreNotServed(path: String, hint: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.get(path)
      #expect(answer.status == 404)
      #expect(answer.headers["content-type"] == "application/problem+json")
      #expect(answer.hint.contains(hint), "\(answer.hint)")
    }
  }
}
