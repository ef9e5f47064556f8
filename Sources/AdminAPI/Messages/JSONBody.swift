internal import Hummingbird
internal import NIOCore
internal import APNSMockNotation

/// The JSON object in a request body. An absent body counts as `{}`.
struct JSONBody {
  /// The required content type.
  static let type = "application/json"

  private let object: JSONStructure

  /// Reads the body.
  ///
  /// - Throws: `Problem`: 413 over 1 MiB, 415 for another content type, 400 for anything but an object.
  init(_ request: Request) async throws {
    let bytes = try await RequestBody.bytes(of: request)
    if bytes.readableBytes > 0 { try RequestBody.type(of: request, among: [Self.type]) }
    try self.init(bytes)
  }

  /// Parses JSON; no bytes count as `{}`.
  ///
  /// - Throws: `Problem` (400) for anything but an object.
  init(_ bytes: ByteBuffer) throws(Problem) {
    object = try Self.object(bytes.readableBytes > 0 ? Array(bytes.readableBytesView) : Array("{}".utf8))
  }

  /// Parses the body by a schema, such as `EmptyBody.schema.parse`.
  ///
  /// - Throws: `Problem` (400) for an unknown member, a missing one or an invalid value.
  func parse<Value>(_ parse: (SchemaNode, SchemaParser) -> Value?) throws(Problem) -> Value {
    let parser = SchemaParser(file: "", ignoresNull: true, isRequestBody: true)
    let value = parse(SchemaNode(root: JSONValue.object(object).node), parser)
    if let value, !parser.problems.hasErrors { return value }
    let problem = parser.problems.problems.first
    throw .badRequest(problem?.message ?? "the body is invalid", hint: problem?.hint ?? "Correct it.")
  }

  private static func object(_ bytes: [UInt8]) throws(Problem) -> JSONStructure {
    if let problem = JSONText.problem(in: bytes) {
      throw .badRequest("the body is not JSON: \(problem)", hint: "Send an object, such as {}.")
    }
    guard case .object(let object) = JSONValue(bytes[...]) else {
      throw .badRequest("the body is JSON but no object", hint: "Send an object, such as {}.")
    }
    return object
  }

  /// Returns the member `name` as JSON; nil if it is absent or null.
  func json(_ name: String) -> [UInt8]? {
    guard let value = object.members[name], value != .null else { return nil }
    var writer = JSONWriter()
    value.write(to: &writer)
    return writer.bytes
  }

  /// Returns a JSON object with the given members, unchanged; absent and null members are omitted.
  func excerpt(of names: [String]) -> String {
    let members = object.members
    var writer = JSONWriter()
    writer.object { writer in
      for name in names {
        guard let value = members[name], value != .null else { continue }
        writer.name(name)
        value.write(to: &writer)
      }
    }
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}

/// A body without members.
struct EmptyBody {
  static let schema = MapSchema("Nothing", EmptyBody())
}
