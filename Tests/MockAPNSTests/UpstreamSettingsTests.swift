import Testing

@testable import MockAPNS

@Suite struct UpstreamSettingsTests {
  @Test(arguments: [
    ("sandbox", "https://api.sandbox.push.apple.com"), ("https://[::1]", "https://[::1]"),
    ("https://[::1]:443/", "https://[::1]"), ("https://[::1]:2197", "https://[::1]:2197"),
    ("https://mock.test", "https://mock.test"),
  ])
  func addressesAreURLs(text: String, url: String) throws {
    #expect(try #require(UpstreamSettings(text)).description == url)
  }

  @Test(arguments: [
    ("push.test", true), ("PUSH.TEST", true), (".test", true), ("test", true), ("*.test", true), ("*.TEST", true),
    ("est", false), ("*", true), ("a.test", false), ("x, push.test", true), ("x push.test", true),
    ("x,,push.test", true),
    ("push.test:2197", true), ("push.test:443", false), (".test:2197", true), ("..test", true), (".", false),
    ("", false),
    (" , ", false), ("push.test.", false),
  ])
  func namesWithoutProxy(list: String, isExcluded: Bool) throws {
    let environment = ["HTTPS_PROXY": "http://proxy.test:3128", "NO_PROXY": list]
    let endpoint = MockServer.Endpoint(host: "push.test", port: 2197)
    #expect((try HTTPProxy.chosen(for: endpoint, environment) == nil) == isExcluded)
  }

  @Test(arguments: [
    ("10.1.2.3", "10.1.2.3", true), ("10.1.2.3", "10.0.0.0/8", true), ("10.1.2.3", "11.0.0.0/8", false),
    ("10.1.2.3", "10.9.9.9/8", true), ("10.1.2.3", "11.9.9.9/8", false),
    ("10.1.2.3", "10.1.2.3:443", true), ("10.1.2.3", "10.1.2.3:80", false), ("::1", "::1", true),
    ("::1", "[::1]", true),
    ("::1", "[::1]:443", true), ("::1", "[::1]:444", false), ("10.1.2.3", "*", true), ("10.1.2.3", "3", false),
  ])
  func addressesWithoutProxy(host: String, list: String, isExcluded: Bool) throws {
    let environment = ["https_proxy": "proxy.test:3128", "no_proxy": list]
    let endpoint = MockServer.Endpoint(host: host, port: 443)
    #expect((try HTTPProxy.chosen(for: endpoint, environment) == nil) == isExcluded)
  }

  @Test func blankVariablesAreNone() throws {
    let endpoint = MockServer.Endpoint(host: "push.test", port: 443)
    #expect(try HTTPProxy.chosen(for: endpoint, ["HTTPS_PROXY": " "]) == nil)
    #expect(
      try HTTPProxy.chosen(for: endpoint, ["HTTPS_PROXY": "\t", "https_proxy": " http://p:1 "])?.endpoint.port == 1)
    #expect(throws: UpstreamError.self) { try HTTPProxy.chosen(for: endpoint, ["HTTPS_PROXY": "socks5://p:1"]) }
  }
}
