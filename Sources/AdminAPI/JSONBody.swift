internal import Hummingbird
internal import NIOCore
internal import Notation

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The JSON object in the body of a request. A body that is absent counts as `{}`.
struct JSONBody {
  private let members: [String: JSONValue]

  /// Reads the body.
  ///
  /// - Parameter names: the members it may have.
  /// - Throws: `Problem`: 413 over 1 MiB, 415 for another content type, 400 for anything but an object of these members.
  init(_ request: Request, allowing names: [String]) async throws {
    let bytes = try await Self.bytes(of: request)
    guard bytes.readableBytes > 0 else {
      members = [:]
      return
    }
    try Self.checkType(of: request)
    members = try Self.object(bytes)
    for name in members.keys.sorted() where !names.contains(name) {
      let guess = Spelling.nearest(to: name, among: names).map { "Did you mean \($0)? " } ?? ""
      throw Problem.badRequest(
        "the body has a member \"\(name)\" that means nothing here",
        hint: "\(guess)What there is: \(names.joined(separator: ", ")).")
    }
  }

  private static func bytes(of request: Request) async throws -> ByteBuffer {
    let tooLarge = Problem(
      status: .contentTooLarge, detail: "the body is over \(Limits.body) bytes", hint: "Send less in one request.")
    if let length = request.headers[.contentLength].flatMap(Int.init), length > Limits.body { throw tooLarge }
    do {
      return try await request.body.collect(upTo: Limits.body)
    } catch is NIOTooManyBytesError {
      throw tooLarge
    } catch {
      // Broken chunks, or a client that went away.
      throw Problem.badRequest("the body did not come whole: \(error)", hint: "Send it again.")
    }
  }

  private static func checkType(of request: Request) throws(Problem) {
    // A form can be posted from any web page without asking; JSON cannot.
    let type = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased() ?? ""
    guard type.filter({ !$0.isWhitespace }) == "application/json" else {
      throw Problem(
        status: .unsupportedMediaType,
        detail: type.isEmpty ? "the body has no content-type" : "the body's content-type is \(type)",
        hint: "Send it with content-type: application/json.")
    }
  }

  private static func object(_ bytes: ByteBuffer) throws(Problem) -> [String: JSONValue] {
    // Checked first: the decoder is lenient, and says neither what is wrong nor where.
    if let problem = bytes.readableBytesView.withUnsafeBytes({ JSONText.problem(in: $0) }) {
      throw .badRequest("the body is not JSON: \(problem)", hint: "Send an object, such as {}.")
    }
    guard let object = try? JSONDecoder().decode([String: JSONValue].self, from: Data(bytes.readableBytesView)) else {
      throw .badRequest("the body is JSON but no object", hint: "Send an object, such as {}.")
    }
    return object
  }

  // MARK: - Members

  /// The text under `name`; nil if it is absent or null.
  func text(_ name: String) throws(Problem) -> String? {
    switch members[name] ?? .null {
    case .null: return nil
    case .text(let text): return text
    default: throw wrong(name, "a text")
    }
  }

  /// The text under `name`, which has to be there.
  func required(_ name: String, hint: String) throws(Problem) -> String {
    guard let text = try text(name) else { throw .badRequest("the body lacks \(name)", hint: hint) }
    return text
  }

  /// The truth value under `name`; nil if it is absent or null.
  func flag(_ name: String) throws(Problem) -> Bool? {
    switch members[name] ?? .null {
    case .null: return nil
    case .flag(let flag): return flag
    default: throw wrong(name, "true or false")
    }
  }

  /// The texts in the array under `name`; nil if it is absent or null.
  func texts(_ name: String) throws(Problem) -> [String]? {
    switch members[name] ?? .null {
    case .null: return nil
    case .list(let list):
      var texts: [String] = []
      for element in list {
        guard case .text(let text) = element else { throw wrong(name, "a list of texts") }
        texts.append(text)
      }
      return texts
    default: throw wrong(name, "a list of texts")
    }
  }

  /// The time under `name`, in milliseconds since 1970; nil if it is absent or null.
  func time(_ name: String) throws(Problem) -> Int64? {
    guard let text = try text(name) else { return nil }
    guard let time = WrittenTime.milliseconds(text) else {
      throw .badRequest(
        "\(name) cannot be \"\(text)\"", hint: "It is a time such as 2026-01-31T12:00:00.000Z (RFC 3339).")
    }
    return time
  }

  /// The word under `name`, one of a few; nil if it is absent or null.
  func word<Word: RawRepresentable & CaseIterable>(_ name: String, _ type: Word.Type) throws(Problem) -> Word?
  where Word.RawValue == String {
    guard let text = try text(name) else { return nil }
    guard let word = Word(rawValue: text) else {
      let words = Word.allCases.map(\.rawValue)
      let guess = Spelling.nearest(to: text, among: words).map { "Did you mean \($0)? " } ?? ""
      throw .badRequest("\(name) cannot be \"\(text)\"", hint: "\(guess)It is one of \(words.joined(separator: ", ")).")
    }
    return word
  }

  private func wrong(_ name: String, _ wanted: String) -> Problem {
    .badRequest("\(name) is not \(wanted)", hint: "Make it \(wanted), or leave it out.")
  }
}

/// A JSON value of any kind.
enum JSONValue: Decodable, Equatable {
  case null
  case flag(Bool)
  case number(Double)
  case text(String)
  case list([JSONValue])
  case object([String: JSONValue])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let flag = try? container.decode(Bool.self) {
      self = .flag(flag)
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let number = try? container.decode(Double.self) {
      self = .number(number)
    } else if let list = try? container.decode([JSONValue].self) {
      self = .list(list)
    } else {
      self = .object(try container.decode([String: JSONValue].self))
    }
  }
}
