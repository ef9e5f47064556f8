import Testing

@testable import TLSEngine

@Suite struct CertificateNameTests {
  @Test(arguments: [
    ("localhost", "localhost"), ("API.Push.Apple.com", "api.push.apple.com"), ("*.example.test", "*.example.test"),
    ("a-b.c1", "a-b.c1"), ("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("[fd00::12]", "fd00::12"),
    ("0:0:0:0:0:0:0:1", "::1"), ("5f2a8c7d1e0b", "5f2a8c7d1e0b"),
  ])
  func names(text: String, description: String) throws {
    #expect(try #require(CertificateName(text)).description == description)
  }

  @Test(arguments: [
    "", ".", "a..b", ".a", "a.", "-a", "a-", "*", "a.*.b", "**.a", "a b", "a_b", "https://a", "a:80", "a/b",
    "127.0.0.256", "1.2.3", "::g", "a,DNS:evil.com", "a\nb", "é.test", "a\u{0}b", String(repeating: "a", count: 64),
    String(repeating: "a.", count: 127) + "b",
  ])
  func invalidNames(text: String) {
    #expect(CertificateName(text) == nil)
  }
}
