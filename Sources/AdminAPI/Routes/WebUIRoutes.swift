internal import APNSMockEmbeddedFiles
internal import Hummingbird
internal import NIOConcurrencyHelpers
internal import NIOCore
internal import APNSMockNotation

/// Routes of the web UI at `/` and its files, which are part of the executable.
enum WebUIRoutes {
  /// The path prefix of the web UI's files.
  static let folder = "/page/"

  /// The content security policy: the page may load only files of this server, may not be framed, runs no inline scripts, and has
  /// only the inline style that it is served with.
  private static let policy = """
    default-src 'none'; script-src 'self'; style-src 'self' \(bundle.styleHash); connect-src 'self'; img-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'
    """

  static var routes: [Route] {
    [":part", ":part/:next", ":part/:next/:last"].map { .get(folder + $0, file) }
  }

  /// Returns whether a request accepts HTML, as those of browsers do.
  static func isAccepted(by request: Request) -> Bool {
    request.headers[.accept]?.lowercased().contains("text/html") ?? false
  }

  /// Returns the web UI's page.
  static func page() throws -> Response {
    var response = response("index.html", bundle.page)
    response.headers[.vary] = "accept"
    return response
  }

  static let files = Dictionary(
    EmbeddedFile.page.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  static let bundle = WebUIBundle(files)

  private static func file(_ request: Request, _ context: AdminContext) throws -> Response {
    let path = String(request.uri.path.dropFirst(folder.count))
    if let file = bundle.files[path] {
      // The page names the version, so that what it loads never changes.
      let isNamed = request.uri.query == "v=\(file.version)"
      return response(
        path, file, isCompressed: request.headers.acceptGzip,
        caching: isNamed ? "public, max-age=31536000, immutable" : "no-cache")
    }
    return try response(path)
  }

  private static func response(_ path: String) throws -> Response {
    guard let file = files[path] else {
      let guess = Spelling.nearest(to: String(path.prefix(80)), among: files.keys.sorted())
      throw Problem.notFound(
        "the page has no file \(folder)\(path.prefix(80))",
        hint: guess.map { "Did you mean \(folder)\($0)?" } ?? "Open / in a browser.")
    }
    return response(path, file.text)
  }

  private static func response(
    _ path: String, _ file: WebUIBundle.File, isCompressed: Bool, caching: String
  ) -> Response {
    var headers: HTTPFields = [
      .contentType: type(of: path), .contentSecurityPolicy: policy, .cacheControl: caching, .vary: "accept-encoding",
    ]
    if isCompressed { headers[.contentEncoding] = "gzip" }
    return Response(
      status: .ok, headers: headers,
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: isCompressed ? file.compressed : file.bytes)))
  }

  private static func response(_ path: String, _ text: String) -> Response {
    Response(
      status: .ok, headers: [.contentType: type(of: path), .contentSecurityPolicy: policy],
      body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
  }

  private static func type(of path: String) -> String {
    switch path.split(separator: ".").last {
    case "html": "text/html; charset=utf-8"
    case "css": "text/css; charset=utf-8"
    case "js": "text/javascript; charset=utf-8"
    case "svg": "image/svg+xml"
    default: "application/octet-stream"
    }
  }
}

/// The route of the OpenAPI description.
struct DescriptionRoutes: Sendable {
  let version: String
  /// The description as JSON, made for the first request. All responses share its memory.
  private let description = NIOLockedValueBox<ByteBuffer?>(nil)

  init(version: String) { self.version = version }

  var routes: [Route] { [.get("/openapi.json", show)] }

  private func show(_ request: Request, _ context: AdminContext) -> Response {
    let description = description.withLockedValue { made in
      let description = made ?? ByteBuffer(bytes: APIDescription(version: version).json)
      made = description
      return description
    }
    return Response(
      status: .ok, headers: [.contentType: JSONBody.type], body: ResponseBody(byteBuffer: description))
  }
}
