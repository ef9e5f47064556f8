internal import Hummingbird
internal import NIOCore
internal import APNSMockNotation

/// Reads the body of a request and its content type.
enum RequestBody {
  /// Returns the body's bytes; empty for an absent body.
  ///
  /// They count towards `MemoryBudget.bodies` until the request is answered.
  ///
  /// - Throws: `Problem`: 415 for a content coding (none is decoded), 413 over `limit` bytes, 503 if other bodies use too
  ///   much memory, 400 if the body is incomplete.
  static func bytes(
    of request: Request, limit: Int = Limits.body, ifLarger hint: String = "Send less in one request."
  ) async throws -> ByteBuffer {
    let tooLarge = Problem(status: .contentTooLarge, detail: "the body is over \(limit) bytes", hint: hint)
    if let coding = request.headers[.contentEncoding], coding.lowercased() != "identity" {
      throw Problem(
        status: .unsupportedMediaType, detail: "the body's content-encoding is \(coding.prefix(80))",
        hint: "Send the body without content-encoding.", headers: [.acceptEncoding: "identity"])
    }
    let length = request.headers[.contentLength].flatMap(Int.init) ?? 0
    guard length <= limit else { throw tooLarge }
    var bytes = ByteBuffer()
    // Growing in steps would leave memory in parts that are too small for others.
    bytes.reserveCapacity(max(0, min(length, Limits.body)))
    do {
      for try await var piece in request.body {
        guard bytes.readableBytes + piece.readableBytes <= limit else { throw tooLarge }
        try MemoryBudget.body?.grow(by: piece.readableBytes)
        bytes.writeBuffer(&piece)
      }
    } catch let problem as Problem {
      throw problem
    } catch {
      // Malformed chunks, or a client that disconnected.
      throw Problem.badRequest("the body is incomplete: \(error)", hint: "Send it again.")
    }
    // The client may have disconnected while the bodies of many other requests were parsed.
    guard DisconnectCancellation.channel?.isActive != false else { throw CancellationError() }
    return bytes
  }

  /// Returns the content type without parameters, in lower case, which must be one of `types`. Browsers let any web
  /// page post forms and plain text without a CORS preflight, but not the types listed here.
  ///
  /// - Throws: `Problem` (415) for another one.
  @discardableResult
  static func type(of request: Request, among types: [String]) throws(Problem) -> String {
    let type = (request.headers[.contentType]?.prefix { $0 != ";" }.lowercased() ?? "").filter { !$0.isWhitespace }
    guard types.contains(type) else {
      throw Problem(
        status: .unsupportedMediaType,
        detail: type.isEmpty ? "the body has no content-type" : "the body's content-type is \(type)",
        hint: "Send it with content-type: \(types.joined(separator: " or ")).")
    }
    return type
  }
}

/// A request body that contains a profile or a rule, as YAML or JSON.
enum DocumentBody {
  /// The accepted content types. A web page of another origin cannot post any of them without a CORS preflight.
  static let types = [JSONBody.type, "application/yaml", "application/x-yaml", "text/yaml"]

  /// Returns the text for the parser of profile files, which accepts both YAML and JSON.
  ///
  /// - Parameter hasWrapper: Whether the body may be a `SourceBody`.
  /// - Throws: `Problem`: 413 over 1 MiB, 415 for another content type, 400 for an empty body, invalid UTF-8 or
  ///   invalid JSON.
  static func text(of request: Request, hasWrapper: Bool = false) async throws -> String {
    let bytes = try await RequestBody.bytes(of: request)
    guard bytes.readableBytes > 0 else {
      throw Problem.badRequest("the body is empty", hint: "Send \(types[0]) or \(types[1]).")
    }
    let type = try RequestBody.type(of: request, among: types)
    guard let text = String(validating: bytes.readableBytesView, as: UTF8.self) else {
      throw Problem.badRequest("the body is not UTF-8", hint: "Send it in that encoding.")
    }
    guard type == JSONBody.type else { return text }
    let body = try JSONBody(bytes)
    guard hasWrapper, body.json(SourceBody.member) != nil else { return text }
    return try body.parse(SourceBody.schema.parse).source
  }
}

/// The text of a profile file in JSON.
struct SourceBody {
  static let member = "source"

  var source = ""

  static let schema = MapSchema(
    "ProfileSource", SourceBody(),
    .required(member, \.source, .text, example: "rules: []", "The text of a profile file."))
}
