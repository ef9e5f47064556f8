import Testing

@testable import APNSMockAdminAPI

@Suite struct RequestPathTests {
  @Test(arguments: [
    ("/", "/"), ("", "/"), ("//", "/"), ("/.", "/"), ("/..", "/"), ("/../..", "/"),
    ("/api/v1/pushes", "/api/v1/pushes"),
    ("//api/v1/pushes", "/api/v1/pushes"), ("/api///v1/pushes//", "/api/v1/pushes"), ("api/v1", "/api/v1"),
    ("/./api/./v1", "/api/v1"), ("/page/../api", "/api"), ("/a/b/../../../api", "/api"), ("/%2e/api", "/api"),
    ("/page/%2E%2e/api", "/api"), ("/page/.%2e/api", "/api"), ("/%61pi", "/api"), ("/a%7Eb", "/a~b"),
    ("/runs/load_1%3Ar3", "/runs/load_1:r3"), ("/a%3ab:c", "/a:b:c"), ("/%253A", "/%253A"),
    // Only unreserved characters and colons are decoded, and only once.
    ("/api%2Fv1", "/api%2Fv1"), ("/api%2fv1", "/api%2fv1"), ("/%252e%252e/api", "/%252e%252e/api"),
    ("/a%20b", "/a%20b"),
    ("/a%00", "/a%00"), ("/%C3%A4", "/%C3%A4"), ("/API", "/API"), ("/...", "/..."), ("/a;b", "/a;b"),
    ("/a\\b", "/a\\b"),
    ("/%", "/%"), ("/%4", "/%4"), ("/%zz", "/%zz"), ("/a%", "/a%"), ("/ä", "/ä"),
  ])
  func pathsHaveOneNormalForm(path: String, normal: String) {
    #expect(RequestPath.normalized(path) == normal)
    #expect(RequestPath.normalized(normal) == normal)
  }
}
