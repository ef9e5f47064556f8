internal import Foundation
internal import HTTPMessage
internal import Notation

/// The members of a payload that determine whether a device shows it, found without building a JSON tree. The last
/// of several members with the same name counts, as in most JSON parsers.
struct PayloadSummary {
  /// The kind of a JSON value.
  enum Content: Sendable {
    case null
    /// `true` or the number 1.
    case yes
    /// `false`.
    case no
    case number
    case text
    case emptyText
    case array
    case object
  }

  /// A known member of the payload or of `aps`.
  enum Name: Int, CaseIterable {
    case aps, mdm, alert, badge, sound, timestamp, event, attributes, contentAvailable, contentChanged, contentState,
      attributesType

    /// The member's name.
    var text: StaticString {
      switch self {
      case .aps: "aps"
      case .mdm: "mdm"
      case .alert: "alert"
      case .badge: "badge"
      case .sound: "sound"
      case .timestamp: "timestamp"
      case .event: "event"
      case .attributes: "attributes"
      case .contentAvailable: "content-available"
      case .contentChanged: "content-changed"
      case .contentState: "content-state"
      case .attributesType: "attributes-type"
      }
    }
  }

  /// Members of an alert that show something (Protocol.md, section 6.2).
  private static let alertTexts: [StaticString] = [
    "title", "subtitle", "body", "title-loc-key", "subtitle-loc-key", "loc-key",
  ]
  private static let nothing = [Content](repeating: .null, count: Name.allCases.count)

  /// Whether the payload has no members.
  private(set) var isEmpty = true
  /// Whether an alert that is an object has something to show.
  private(set) var alertHasText = false
  /// The event of a Live Activity, with its escapes.
  private(set) var event: String?
  // Indexed by the raw values of the names.
  private var root = nothing
  private var dictionary = nothing

  /// Returns the value of a member of the payload; nil if it is absent or null.
  func member(_ name: Name) -> Content? { root[name.rawValue].unlessNull }

  /// Returns the value of a member of `aps`; nil if it is absent or null, or if `aps` is not an object.
  func apple(_ name: Name) -> Content? { dictionary[name.rawValue].unlessNull }

  /// Scans a payload.
  ///
  /// - Returns: nil if the payload is JSON but not an object.
  /// - Throws: `JSONText.Problem` if the payload is not JSON.
  init?(_ body: UnsafeRawBufferPointer) throws(JSONText.Problem) {
    if let problem = JSONText.problem(in: body) { throw problem }
    var walk = JSONWalk(body)
    guard walk.isObject else { return nil }
    walk.forEachMember { name, walk in
      isEmpty = false
      guard let known = Name(name) else { return }
      root[known.rawValue] = walk.content
      if known == .aps {
        dictionary = Self.nothing
        readDictionary(&walk)
      }
    }
  }

  private mutating func readDictionary(_ walk: inout JSONWalk) {
    guard walk.isObject else { return }
    walk.forEachMember { name, walk in
      guard let known = Name(name) else { return }
      dictionary[known.rawValue] = walk.content
      if known == .event { event = walk.text }
      guard known == .alert, walk.isObject else { return }
      alertHasText = false
      walk.forEachMember { name, walk in
        guard Self.alertTexts.contains(where: name.equals) else { return }
        if walk.content.unlessNull != nil { alertHasText = true }
      }
    }
  }
}

extension PayloadSummary.Name {
  /// Creates the member with this name; escapes are not decoded.
  fileprivate init?(_ bytes: UnsafeRawBufferPointer) {
    guard let found = Self.allCases.first(where: { bytes.equals($0.text) }) else { return nil }
    self = found
  }
}

extension PayloadSummary.Content {
  fileprivate var unlessNull: Self? { if case .null = self { nil } else { self } }
}

/// Walks through JSON that was already validated.
private struct JSONWalk {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
    skipSpace()
  }

  private var current: UInt8 { position < bytes.count ? bytes[position] : 0 }

  /// Whether the current value is an object.
  var isObject: Bool { current == UInt8(ascii: "{") }

  /// The kind of the current value.
  var content: PayloadSummary.Content {
    switch current {
    case UInt8(ascii: "{"): return .object
    case UInt8(ascii: "["): return .array
    case UInt8(ascii: "\""):
      return position + 1 < bytes.count && bytes[position + 1] == UInt8(ascii: "\"") ? .emptyText : .text
    case UInt8(ascii: "t"): return .yes
    case UInt8(ascii: "f"): return .no
    case UInt8(ascii: "n"): return .null
    default:
      var after = self
      after.skipValue()
      let isOne = after.position == position + 1 && current == UInt8(ascii: "1")
      return isOne ? .yes : .number
    }
  }

  /// The current string with its escapes; nil for another value.
  var text: String? {
    guard current == UInt8(ascii: "\"") else { return nil }
    var after = self
    after.skipValue()
    return String(decoding: bytes[position + 1..<after.position - 1], as: UTF8.self)
  }

  /// Calls `read` at the value of each member of the current object, and moves past the object.
  mutating func forEachMember(_ read: (UnsafeRawBufferPointer, inout JSONWalk) -> Void) {
    position += 1
    skipSpace()
    while current == UInt8(ascii: "\"") {
      let start = position + 1
      skipValue()
      let name = UnsafeRawBufferPointer(rebasing: bytes[start..<position - 1])
      skipSpace()
      position += 1  // The colon.
      skipSpace()
      var value = self
      read(name, &value)
      skipValue()
      skipSpace()
      guard current == UInt8(ascii: ",") else { break }
      position += 1
      skipSpace()
    }
    position += 1
  }

  private mutating func skipSpace() {
    while position < bytes.count, bytes[position] <= 0x20 { position += 1 }
  }

  /// Moves past the current value.
  private mutating func skipValue() {
    var depth = 0
    repeat {
      switch current {
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        depth += 1
        position += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        position += 1
      case UInt8(ascii: "\""): skipText()
      case UInt8(ascii: ","), UInt8(ascii: ":"), 0...0x20: position += 1
      default: skipWord()
      }
    } while depth > 0 && position < bytes.count
  }

  private mutating func skipText() {
    position += 1
    while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
      position += bytes[position] == UInt8(ascii: "\\") ? 2 : 1
    }
    position = min(position + 1, bytes.count)
  }

  /// Moves past a number, `true`, `false` or `null`.
  private mutating func skipWord() {
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"), UInt8(ascii: ":"), 0...0x20: return
      default: position += 1
      }
    }
  }
}

/// Row 17 of Protocol.md, section 8.2: the body is present and within the limit of section 6.1. APNs does not
/// interpret it (section 6.2).
extension Rulebook {
  func checkPayload(_ request: HTTPRequest, _ facts: PushFacts) throws(Rejection) {
    guard request.bodySize > 0 else { throw Self.noPayload }
    guard request.bodySize <= facts.payloadLimit else { throw Self.largePayload }
    guard mode == .strict, Payload.parse(request.body) == nil else { return }
    throw Self.payloadIsNoJSON
  }

  private static let noPayload = Rejection(.payloadPresent, .payloadEmpty) { _, _ in
    "the push has no body: send the payload as JSON"
  }
  private static let largePayload = Rejection(
    .payloadSize, .payloadTooLarge,
    words: .ofBody { facts, bodySize in
      "the body has \(bodySize) bytes, at most \(facts.payloadLimit) are allowed for "
        + (facts.payloadLimit == PushType.usualPayloadLimit ? "this push type: shorten it" : "VoIP: shorten it")
    })
  private static let payloadIsNoJSON = Rejection(.payloadSyntax, .payloadEmpty) { _, _ in
    "the body is not JSON, which rules \"strict\" reject (APNs responds with 200 and the device shows nothing)"
  }
}

/// Payload parsing.
enum Payload {
  /// Parses JSON; nil if `body` is not valid JSON or has more than 512 levels of nesting.
  static func parse(_ body: [UInt8]) -> Any? {
    try? JSONSerialization.jsonObject(with: Data(body), options: .fragmentsAllowed)
  }
}
