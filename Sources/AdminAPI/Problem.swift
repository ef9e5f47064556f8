internal import Faults
internal import Hummingbird
internal import Inbox
internal import Notation

/// An error as the admin API tells it: a problem document (RFC 9457) with a `hint` how to repair it.
struct Problem: Error {
  /// The HTTP status.
  var status: HTTPResponse.Status
  /// What is wrong, with the value that is.
  var detail: String
  /// How to repair it.
  var hint: String
  /// Further fields of the answer's header.
  var headers: HTTPFields = [:]
  /// The word that is wrong in the text of a query; nil where it is about none.
  var place: FilterError.Place?
  /// Everything that is wrong with a profile or a rule; nil where it is about none.
  var problems: [ProfileProblem]?
  /// Everything that is wrong with a verification; nil where it is about none.
  var mistakes: [VerificationProblem]?

  /// 400: a query or a body that cannot be understood.
  static func badRequest(_ detail: String, hint: String) -> Problem {
    Problem(status: .badRequest, detail: detail, hint: hint)
  }

  /// 404: something that is not, or not any more, there.
  static func notFound(_ detail: String, hint: String) -> Problem {
    Problem(status: .notFound, detail: detail, hint: hint)
  }

  /// 403: a request that a browser was talked into, or that looks like it.
  static func forbidden(_ detail: String, hint: String) -> Problem {
    Problem(status: .forbidden, detail: detail, hint: hint)
  }

  /// A filter that cannot be read.
  init(_ error: FilterError) {
    self.init(status: .badRequest, detail: error.message, hint: error.hint)
    place = error.place
  }

  /// Runs a query and turns a `FilterError` that it throws into a problem.
  static func describing<Value>(_ query: () async throws -> Value) async throws -> Value {
    do { return try await query() } catch let error as FilterError { throw Problem(error) }
  }

  init(status: HTTPResponse.Status, detail: String, hint: String, headers: HTTPFields = [:]) {
    self.status = status
    self.detail = detail
    self.hint = hint
    self.headers = headers
  }

  /// The content type of problem documents.
  static let type = "application/problem+json"

  /// The problem as an answer.
  var response: Response {
    var response = Response.jsonValue(status: status, write)
    response.headers[.contentType] = Self.type
    response.headers.append(contentsOf: headers)
    return response
  }

  /// Writes the problem document as the next value.
  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("type", "about:blank")
      writer.member("title", status.reasonPhrase)
      writer.member("status", status.code)
      writer.member("detail", detail)
      writer.member("hint", hint)
      if let place {
        writer.member("column", place.column)
        writer.member("word", place.word)
      }
      if let problems { writer.arrayMember("problems") { problems.write(to: &$0) } }
      if let mistakes {
        writer.arrayMember("problems") { writer in
          for mistake in mistakes { mistake.write(to: &writer) }
        }
      }
    }
  }
}

extension Response {
  /// An answer whose body is a JSON object.
  static func json(status: HTTPResponse.Status = .ok, _ members: (inout JSONWriter) -> Void) -> Response {
    jsonValue(status: status) { $0.object(members) }
  }

  /// An answer whose body is JSON; `value` writes the one value that it is.
  static func jsonValue(status: HTTPResponse.Status = .ok, _ value: (inout JSONWriter) -> Void) -> Response {
    var writer = JSONWriter()
    value(&writer)
    return Response(
      status: status, headers: [.contentType: "application/json"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: writer.bytes)))
  }

  /// An answer whose body is text for people.
  static func text(_ text: String, type: String = "text/plain; charset=utf-8") -> Response {
    Response(
      status: .ok, headers: [.contentType: type], body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
  }
}
