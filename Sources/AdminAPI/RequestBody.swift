internal import Hummingbird
internal import NIOCore

/// Reads the body of a request and its content type.
enum RequestBody {
  /// Returns the body's bytes; empty for an absent body.
  ///
  /// - Throws: `Problem`: 415 for a content coding (none is decoded), 413 over 1 MiB, 400 if the body is incomplete.
  static func bytes(of request: Request) async throws -> ByteBuffer {
    let tooLarge = Problem(
      status: .contentTooLarge, detail: "the body is over \(Limits.body) bytes", hint: "Send less in one request.")
    if let coding = request.headers[.contentEncoding], coding.lowercased() != "identity" {
      throw Problem(
        status: .unsupportedMediaType, detail: "the body's content-encoding is \(coding.prefix(80))",
        hint: "Send the body without content-encoding.", headers: [.acceptEncoding: "identity"])
    }
    if let length = request.headers[.contentLength].flatMap(Int.init), length > Limits.body { throw tooLarge }
    do {
      return try await request.body.collect(upTo: Limits.body)
    } catch is NIOTooManyBytesError {
      throw tooLarge
    } catch {
      // Malformed chunks, or a client that disconnected.
      throw Problem.badRequest("the body is incomplete: \(error)", hint: "Send it again.")
    }
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
