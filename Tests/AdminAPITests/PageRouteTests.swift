import APNSMockAdminAPI
import APNSMockEmbeddedFiles
import Foundation
import MockAPNS
import APNSMockTestSupport
import Testing

/// The web UI and its files.
@Suite struct PageRouteTests {
  @Test func everyFileHasItsTypeAndAStrictPolicy() async throws {
    let types = ["html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"]
    try await TestServer.run { server in
      for file in EmbeddedFile.page {
        let path = file.name
        let response = await server.client.get("/page/\(path)")
        #expect(response.status == 200, "\(path)")
        #expect(response.text == file.text, "\(path)")
        let type = try #require(types[String(path.split(separator: ".").last ?? "")])
        #expect(response.headers["content-type"]?.hasPrefix(type) == true, "\(path)")
        let policy = try #require(response.headers["content-security-policy"])
        #expect(policy.hasPrefix("default-src 'none'; script-src 'self';"))
        #expect(policy.contains("base-uri 'none'; form-action 'none'; frame-ancestors 'none'"))
        #expect(!policy.contains("unsafe"))
      }
    }
  }

  /// Every file that a page file loads exists, so that nothing is missing offline and nothing is loaded from another
  /// server.
  @Test func pageReferencesOnlyExistingFiles() throws {
    let paths = Set(EmbeddedFile.page.map(\.name))
    for file in EmbeddedFile.page {
      let (path, text) = (file.name, file.text)
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

  /// Returns the modules of a script and those that are defined before it. Each is defined before it is imported.
  private func modules(in script: String, after earlier: Set<String> = []) -> Set<String> {
    var defined = earlier
    for line in script.split(separator: "\n") {
      if let match = line.firstMatch(of: #/modules\["([^"]+)"\] = \(\(\) => \{/#) {
        defined.insert(String(match.output.1))
      }
      if let match = line.firstMatch(of: #/^const .* = modules\["([^"]+)"\];$/#) {
        #expect(defined.contains(String(match.output.1)), "imported before it is defined: \(line)")
      }
    }
    return defined
  }

  /// The page loads a script for the first request, one for the list and one for everything else, with all modules, each after
  /// those that it imports, and one style sheet.
  @Test func pageLoadsFewScriptsAndOneStyleSheet() async throws {
    try await TestServer.run { server in
      let page = await server.client.request("GET", "/", [("accept", "text/html")]).text
      let loaded = page.matches(of: #/(?:src|rel="stylesheet" href)="\/page\/([^"]+)"/#).map { String($0.output.1) }
      #expect(loaded.map { $0.prefix { $0 != "?" } } == ["early.js", "app.css", "app.js"])
      let first = await server.client.get("/page/app.js").text
      let later = first.firstMatch(of: #/import\("\/page\/(later\.js\?v=[0-9a-f]+)"\)/#).map { String($0.output.1) }
      // With the version that the page names, a browser keeps them; without it, it asks each time.
      for path in loaded + [try #require(later)] {
        let kept = await server.client.request("GET", "/page/\(path)", [("accept-encoding", "gzip")])
        #expect(kept.headers["cache-control"] == "public, max-age=31536000, immutable")
        #expect(kept.headers["content-encoding"] == "gzip")
        #expect(await server.client.get("/page/\(path)1").headers["cache-control"] == "no-cache")
      }
      let script = await server.client.get("/page/app.js")
      #expect(script.headers["content-type"]?.hasPrefix("text/javascript") == true)
      #expect(script.text.split(separator: "\n").allSatisfy { !$0.hasPrefix("import ") && !$0.hasPrefix("export ") })
      _ = await server.client.send("POST", "/api/v1/runs", "{}")
      let report = await server.client.get("/api/v1/runs/r1/report")
      #expect(report.status == 200)
      let ofList = modules(in: script.text)
      let rest = await server.client.get("/page/later.js").text
      let names = rest.matches(of: #/modules\["([^"]+)"\] = \(\(\) => \{/#).map { String($0.output.1) }
      #expect(!names.isEmpty && ofList.isDisjoint(with: names), "a module is loaded once")
      let defined = modules(in: rest, after: ofList).union(modules(in: report.text))
      let modules = EmbeddedFile.page.map(\.name).filter { $0.hasSuffix(".js") }
      #expect(defined == Set(modules), "a module that no other one imports is dead")
      let style = await server.client.get("/page/app.css")
      #expect(style.headers["content-type"]?.hasPrefix("text/css") == true)
      for file in EmbeddedFile.page where file.name.hasSuffix(".css") {
        #expect(style.text.contains(file.text), "\(file.name)")
      }
    }
  }
}
