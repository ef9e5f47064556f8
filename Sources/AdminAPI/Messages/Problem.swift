internal import APNSMockFaultModel
internal import APNSMockFaults
internal import Hummingbird
internal import APNSMockInbox
internal import NIOCore
internal import APNSMockNotation

/// An error response of the admin API: a problem document (RFC 9457) with a `hint` about the solution.
struct Problem: Error {
  /// The HTTP status.
  var status: HTTPResponse.Status
  /// The problem, including the invalid value.
  var detail: String
  /// The way to solve the problem.
  var hint: String
  /// Further header fields of the response.
  var headers: HTTPFields = [:]
  /// The position of the invalid word in a query; nil for other problems.
  var place: FilterError.Place?
  /// The kind of the problem; nil for that of the status.
  var kind: Kind?
  /// All problems of a document; nil for other problems.
  var problems: [FileProblem]?
  /// Whether `problems` are those of a verification, which are written with JSON pointers and without positions.
  var hasPointers = false

  /// Returns a problem with status 400: an invalid query or body.
  static func badRequest(_ detail: String, hint: String) -> Problem {
    Problem(status: .badRequest, detail: detail, hint: hint)
  }

  /// Returns a problem with status 404: a resource that does not exist, or not any more.
  static func notFound(_ detail: String, hint: String) -> Problem {
    Problem(status: .notFound, detail: detail, hint: hint)
  }

  /// Returns a problem with status 403: a request that may be forged by a web page.
  static func forbidden(_ detail: String, hint: String) -> Problem {
    Problem(status: .forbidden, detail: detail, hint: hint)
  }

  /// Returns the problem of a parameter or member whose value is none of a fixed set.
  static func unknownValue(_ text: String, of name: String, among known: [String]) -> Problem {
    let guess = Spelling.suggestion(for: text, among: known)
    return .badRequest("\(name) cannot be \"\(text.prefix(80))\"", hint: "\(guess)Expected \(known.joinedWithOr).")
  }

  /// Creates the problem of an invalid filter.
  init(_ error: FilterError) {
    self.init(status: .badRequest, detail: error.message, hint: error.hint)
    kind = .invalidQuery
    place = error.place
  }

  init(
    status: HTTPResponse.Status, kind: Kind? = nil, detail: String, hint: String, headers: HTTPFields = [:]
  ) {
    self.status = status
    self.kind = kind
    self.detail = detail
    self.hint = hint
    self.headers = headers
  }

  /// The content type of problem documents.
  static let type = "application/problem+json"

  /// The problem as a response.
  var response: Response {
    var response = Response.jsonValue(status: status, write)
    response.headers[.contentType] = Self.type
    response.headers.append(contentsOf: headers)
    return response
  }

  /// Writes the problem document as the next value.
  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("type", "apns-mock:" + (kind ?? Kind(of: status)).rawValue)
      writer.member("title", status.reasonPhrase)
      writer.member("status", status.code)
      writer.member("detail", detail)
      writer.member("hint", hint)
      if let place {
        writer.member("column", place.column)
        writer.member("word", place.word)
      }
      guard let problems else { return }
      writer.arrayMember("problems") { writer in
        guard hasPointers else { return problems.write(to: &writer) }
        for problem in problems {
          writer.object { writer in
            writer.member("pointer", problem.path)
            writer.member("message", problem.message)
            writer.member("hint", problem.advice)
          }
        }
      }
    }
  }
}

extension Problem {
  /// What clients can tell problems apart by. The raw values are promises: they follow `apns-mock:` in `type`.
  enum Kind: String, CaseIterable {
    case invalidRequest = "invalid-request"
    /// A query, or a field of one.
    case invalidQuery = "invalid-query"
    /// A profile, rule, fixture or verification.
    case invalidDocument = "invalid-document"
    case unauthorized, forbidden
    case notFound = "not-found"
    case methodNotAllowed = "method-not-allowed"
    case timeout, conflict
    case tooLarge = "too-large"
    case unsupportedMediaType = "unsupported-media-type"
    /// Too much is going on.
    case busy
    case stopping
    /// Another server is active.
    case standby
    case storeUnavailable = "store-unavailable"
    case internalError = "internal-error"

    /// Creates the usual kind of a status.
    init(of status: HTTPResponse.Status) {
      self =
        switch status.code {
        case 401: .unauthorized
        case 403, 421: .forbidden
        case 404, 410: .notFound
        case 405: .methodNotAllowed
        case 408: .timeout
        case 409: .conflict
        case 413, 414, 431: .tooLarge
        case 415: .unsupportedMediaType
        case 422: .invalidDocument
        case 503: .busy
        case 500...: .internalError
        default: .invalidRequest
        }
    }
  }
}

extension Response {
  /// Returns a response with a JSON object as its body.
  static func json(status: HTTPResponse.Status = .ok, _ members: (inout JSONWriter) -> Void) -> Response {
    jsonValue(status: status) { $0.object(members) }
  }

  /// Returns a response with a JSON body; `value` writes its single value.
  static func jsonValue(status: HTTPResponse.Status = .ok, _ value: (inout JSONWriter) -> Void) -> Response {
    var writer = JSONWriter()
    value(&writer)
    return bytes(writer.bytes, status: status, type: JSONBody.type)
  }

  /// Returns the response to a request that stored an item: 201 with its location if it is new, otherwise 200.
  ///
  /// - Parameters:
  ///   - path: The item's path below `/api/v1`.
  ///   - value: Writes the item.
  static func stored(at path: String, isNew: Bool, _ value: (inout JSONWriter) -> Void) -> Response {
    var response = jsonValue(status: isNew ? .created : .ok, value)
    if isNew { response.headers[.location] = "/api/v1" + path }
    return response
  }

  /// Returns a response with a text body.
  static func text(_ text: String, type: String = "text/plain; charset=utf-8") -> Response {
    bytes(Array(text.utf8), type: type)
  }

  /// The size of the pieces in which a response is written, in bytes: what is buffered for a client that does not read.
  static let pieceSize = 12 << 10

  /// Returns a response with bytes that were made for it. More than one piece counts towards `MemoryBudget.responses` until
  /// the client has read nearly all of it; if other responses use too much memory, the response is 503.
  static func bytes(_ bytes: [UInt8], status: HTTPResponse.Status = .ok, type: String) -> Response {
    let headers: HTTPFields = [.contentType: type]
    guard bytes.count > pieceSize else {
      return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }
    let reservation = MemoryBudget.Reservation(in: .responses)
    do throws(Problem) {
      try reservation.grow(by: bytes.count)
    } catch {
      return error.response
    }
    let eventLoop = DisconnectCancellation.channel?.eventLoop
    return Response(
      status: status, headers: headers,
      body: ResponseBody(contentLength: bytes.count) { writer in
        defer { withExtendedLifetime(reservation) {} }
        for start in stride(from: 0, to: bytes.count, by: pieceSize) {
          let piece = ByteBuffer(bytes: bytes[start..<min(start + pieceSize, bytes.count)])
          try await writer.write(piece, atPaceOf: eventLoop)
        }
        try await writer.finish(nil)
      })
  }
}

extension Problem {
  /// Returns the problem of an unknown profile: status 404 if the path names it, 422 if the body does.
  static func unknownProfile(_ name: String, _ library: ProfileLibrary, status: HTTPResponse.Status) -> Problem {
    let guess = Spelling.suggestion(for: name, among: library.names)
    return Problem(
      status: status, kind: .notFound, detail: "unknown profile \"\(name.prefix(80))\"",
      hint: "\(guess)The profiles are \(Spelling.choices(for: name, among: library.names)).")
  }

  /// Creates the problem of an invalid profile or rule, with all details in `problems`.
  ///
  /// - Parameter isAddressed: Whether the path names the profile, so that an unknown one results in 404. Otherwise
  ///   the body names it, and the result is 422.
  init(_ failure: ProfileFailure, isAddressed: Bool = false) {
    let status: HTTPResponse.Status =
      switch failure.kind {
      case .unknownName: isAddressed ? .notFound : .unprocessableContent
      case .faulty: .unprocessableContent
      case .notAllowed: .conflict
      }
    self.init(status: status, failure.problems)
    if case .unknownName = failure.kind { kind = .notFound }
  }

  /// Creates the problem of an invalid verification.
  init(verification failure: FileFailure) {
    // The positions are those in JSON that the client has generated.
    self.init(
      status: .badRequest,
      failure.problems.map { FileProblem(file: "", path: $0.path, $0.message, hint: $0.advice) })
    hasPointers = true
    kind = .invalidDocument
  }

  /// Creates the problem of a document with errors.
  init(status: HTTPResponse.Status = .unprocessableContent, _ problems: [FileProblem]) {
    let errors = problems.filter { $0.severity == .error }
    let first = errors.first ?? problems.first
    let others = errors.count > 1 ? ", and \(errors.count - 1) more" : ""
    self.init(
      status: status, detail: (first?.withoutHint ?? "the file is invalid") + others,
      hint: first?.hint == nil ? "See problems." : first?.advice ?? "")
    self.problems = problems
  }
}
