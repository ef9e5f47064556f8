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
  /// - Parameter wrapper: The member of a JSON object that may contain the text of a file; nil for none.
  /// - Throws: `Problem`: 413 over 1 MiB, 415 for another content type, 400 for an empty body, invalid UTF-8 or
  ///   invalid JSON.
  static func text(of request: Request, wrapper: String? = nil) async throws -> String {
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
    if let wrapper, body.names.contains(wrapper) {
      try body.allow([wrapper])
      return try body.required(wrapper, hint: "It must be the text of a profile file.")
    }
    return joiningSurrogates(in: text)
  }

  /// Returns JSON with each pair of escaped surrogates as one escape, as YAML requires. All other JSON is valid
  /// YAML.
  ///
  /// - Parameter json: Valid JSON according to `JSONText.problem`, so that all surrogates are paired.
  private static func joiningSurrogates(in json: String) -> String {
    let bytes = Array(json.utf8)
    var joined: [UInt8] = []
    joined.reserveCapacity(bytes.count)
    var position = 0
    while position < bytes.count {
      guard bytes[position] == UInt8(ascii: "\\") else {
        joined.append(bytes[position])
        position += 1
        continue
      }
      if let high = unit(bytes, at: position), (0xD800...0xDBFF).contains(high), let low = unit(bytes, at: position + 6)
      {
        let scalar = 0x10000 + (high - 0xD800) << 10 + (low - 0xDC00)
        joined += "\\U\(Hexadecimal.text(UInt32(scalar), digits: 8))".utf8
        position += 12
      } else {
        joined += bytes[position..<min(position + 2, bytes.count)]
        position += 2
      }
    }
    return String(decoding: joined, as: UTF8.self)
  }

  /// Returns the number in the escape `\uXXXX` at a position; nil if there is none.
  private static func unit(_ bytes: [UInt8], at position: Int) -> Int? {
    guard position + 6 <= bytes.count, bytes[position] == UInt8(ascii: "\\"), bytes[position + 1] == UInt8(ascii: "u")
    else { return nil }
    return Int(String(decoding: bytes[position + 2..<position + 6], as: UTF8.self), radix: 16)
  }
}
