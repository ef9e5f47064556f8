internal import APNSMockFaultModel
internal import APNSMockFaults
internal import Hummingbird
internal import NIOCore
internal import APNSMockNotation

/// The JSON object in a request body. An absent body counts as `{}`.
struct JSONBody {
  /// The required content type.
  static let type = "application/json"

  private let members: [String: JSONValue]

  /// Reads the body.
  ///
  /// - Parameter names: The allowed members.
  /// - Throws: `Problem`: 413 over 1 MiB, 415 for another content type, 400 for anything but an object with these
  ///   members.
  init(_ request: Request, allowing names: [String]) async throws {
    try await self.init(request)
    try allow(names)
  }

  /// Reads the body with any members.
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
    members = bytes.readableBytes > 0 ? try Self.object(bytes) : [:]
  }

  /// Checks that there are no other members than these.
  ///
  /// - Throws: `Problem` (400).
  func allow(_ names: [String]) throws(Problem) {
    for name in members.keys.sorted() where !names.contains(name) {
      let guess = SchemaParser.nearest(to: String(name.prefix(40)), among: names).map { "Did you mean \($0)? " } ?? ""
      throw .badRequest(
        "the body has an unknown member \"\(name)\"",
        hint: names.isEmpty ? "Send {} or no body." : "\(guess)The members are \(names.joined(separator: ", ")).")
    }
  }

  private static func object(_ bytes: ByteBuffer) throws(Problem) -> [String: JSONValue] {
    let bytes = Array(bytes.readableBytesView)
    if let problem = bytes.withUnsafeBytes({ JSONText.problem(in: $0) }) {
      throw .badRequest("the body is not JSON: \(problem)", hint: "Send an object, such as {}.")
    }
    guard case .object(let object) = JSONValue(bytes[...]) else {
      throw .badRequest("the body is JSON but no object", hint: "Send an object, such as {}.")
    }
    return object.members
  }

  // MARK: - Members

  /// The names of the members in alphabetical order.
  var names: [String] { members.keys.sorted() }

  /// Returns the string member `name`; nil if it is absent or null.
  func text(_ name: String) throws(Problem) -> String? {
    switch members[name] ?? .null {
    case .null: return nil
    case .text(let text): return text
    default: throw wrong(name, "a string")
    }
  }

  /// Returns the string member `name`, which is required.
  func required(_ name: String, hint: String) throws(Problem) -> String {
    guard let text = try text(name) else { throw .badRequest("the body lacks \(name)", hint: hint) }
    return text
  }

  /// Returns the Boolean member `name`; nil if it is absent or null.
  func flag(_ name: String) throws(Problem) -> Bool? {
    switch members[name] ?? .null {
    case .null: return nil
    case .flag(let flag): return flag
    default: throw wrong(name, "true or false")
    }
  }

  /// Whether the member `name` is true or false.
  func isFlag(_ name: String) -> Bool {
    if case .flag? = members[name] { true } else { false }
  }

  /// Returns the member `name`, an array of strings; nil if it is absent or null.
  func texts(_ name: String) throws(Problem) -> [String]? {
    switch members[name] ?? .null {
    case .null: return nil
    case .list(let list):
      var texts: [String] = []
      for element in list.elements {
        guard case .text(let text) = element else { throw wrong(name, "a list of strings") }
        texts.append(text)
      }
      return texts
    default: throw wrong(name, "a list of strings")
    }
  }

  /// Returns the member `name`, a string or an array of strings; nil if it is absent or null.
  func textOrTexts(_ name: String) throws(Problem) -> [String]? {
    if case .text(let text)? = members[name] { return [text] }
    return try texts(name)
  }

  /// Returns the time member `name`, in milliseconds since 1970; nil if it is absent or null.
  func time(_ name: String) throws(Problem) -> Int64? {
    guard let text = try text(name) else { return nil }
    guard let time = TimestampFormat.milliseconds(text) else {
      throw .badRequest(
        "\(name) cannot be \"\(text)\"", hint: "It must be a time such as 2026-01-31T12:00:00.000Z (RFC 3339).")
    }
    return time
  }

  /// Returns the member `name` as one of the cases of `type`; nil if it is absent or null.
  func choice<Choice: RawRepresentable & CaseIterable>(_ name: String, _ type: Choice.Type) throws(Problem) -> Choice?
  where Choice.RawValue == String {
    guard let text = try text(name) else { return nil }
    guard let choice = Choice(rawValue: text) else {
      let names = Choice.allCases.map(\.rawValue)
      let guess = Spelling.suggestion(for: text, among: names)
      throw .badRequest(
        "\(name) cannot be \"\(text)\"", hint: "\(guess)Expected one of \(names.joined(separator: ", ")).")
    }
    return choice
  }

  /// Returns the integer member `name`; nil if it is absent or null.
  func whole(_ name: String, in range: ClosedRange<Int64>) throws(Problem) -> Int64? {
    switch members[name] ?? .null {
    case .null: return nil
    case .number(let text):
      if let number = Int64(text), range.contains(number) { return number }
    default: break
    }
    throw wrong(name, "a whole number from \(range.lowerBound) to \(range.upperBound)")
  }

  /// Returns the duration member `name`, longer than zero; nil if it is absent or null.
  func duration(_ name: String) throws(Problem) -> Duration? {
    guard let text = try text(name) else { return nil }
    do {
      return try Value.duration(text, isPositive: true)
    } catch {
      throw .badRequest("\(name) cannot be \"\(error.value.prefix(80))\"", hint: "Expected \(error.allowed).")
    }
  }

  /// Returns the scalar members of the object `name` as strings, with nil for null. Empty if the object is absent or
  /// null.
  func scalars(_ name: String) throws(Problem) -> [String: String?] {
    switch members[name] ?? .null {
    case .null: return [:]
    case .object(let object): return try Self.scalars(object.members, in: name + ".")
    default: throw wrong(name, "an object")
    }
  }

  /// Returns the scalar members of the body as strings, with nil for null.
  func scalars() throws(Problem) -> [String: String?] { try Self.scalars(members, in: "") }

  private static func scalars(_ object: [String: JSONValue], in path: String) throws(Problem) -> [String: String?] {
    var scalars: [String: String?] = [:]
    for (name, value) in object.sorted(by: { $0.key < $1.key }) {
      switch value {
      case .null: scalars[name] = .some(nil)
      case .flag(let flag): scalars[name] = String(flag)
      case .number(let text), .text(let text): scalars[name] = text
      case .list, .object:
        throw .badRequest(
          "\(path)\(name) is not a scalar", hint: "It must be a number, a string, true or false.")
      }
    }
    return scalars
  }

  /// Returns the member `name` as JSON; nil if it is absent or null.
  func json(_ name: String) -> [UInt8]? {
    guard let value = members[name], value != .null else { return nil }
    var writer = JSONWriter()
    value.write(to: &writer)
    return writer.bytes
  }

  /// Returns a JSON object with the given members, unchanged; absent and null members are omitted.
  func excerpt(of names: [String]) -> String {
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

  /// Returns the problem that the member `name` has the wrong type or an invalid value.
  func wrong(_ name: String, _ wanted: String) -> Problem {
    .badRequest("\(name) must be \(wanted)", hint: "Change it to \(wanted), or omit it.")
  }
}
