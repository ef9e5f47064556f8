internal import APNSMockHTTPMessage
internal import APNSMockNotation

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
    case aps, mdm, alert, badge, sound, event, contentAvailable, contentChanged

    /// The member's name.
    var text: StaticString {
      switch self {
      case .aps: "aps"
      case .mdm: "mdm"
      case .alert: "alert"
      case .badge: "badge"
      case .sound: "sound"
      case .event: "event"
      case .contentAvailable: "content-available"
      case .contentChanged: "content-changed"
      }
    }
  }

  /// Members of an alert that show something (Protocol.md, section 6.2).
  private static let alertTexts: [StaticString] = [
    "title", "subtitle", "body", "title-loc-key", "subtitle-loc-key", "loc-key",
  ]
  private static let empty = [Content](repeating: .null, count: Name.allCases.count)

  /// Whether the payload has no members.
  private(set) var isEmpty = true
  /// Whether an alert that is an object has something to show.
  private(set) var alertHasText = false
  /// The event of a Live Activity, with its escapes.
  private(set) var event: String?
  /// The position of `aps` in the payload; nil if it is absent or not an object.
  private(set) var dictionaryRange: Range<Int>?
  // Indexed by the raw values of the names.
  private var root = empty
  private var dictionary = empty

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
    var scanner = JSONScanner(body)
    guard scanner.enterObject() else { return nil }
    while let (name, value) = scanner.nextMember() {
      isEmpty = false
      guard let known = Name(body.part(name)) else { continue }
      root[known.rawValue] = Content(body.part(value))
      if known == .aps {
        dictionary = Self.empty
        dictionaryRange = root[known.rawValue] == .object ? value : nil
        readDictionary(body.part(value))
      }
    }
  }

  private mutating func readDictionary(_ json: UnsafeRawBufferPointer) {
    var scanner = JSONScanner(json)
    guard scanner.enterObject() else { return }
    while let (name, value) = scanner.nextMember() {
      guard let known = Name(json.part(name)) else { continue }
      let content = Content(json.part(value))
      dictionary[known.rawValue] = content
      switch known {
      case .event where content == .text || content == .emptyText:
        event = String(decoding: json[value].dropFirst().dropLast(), as: UTF8.self)
      case .event: event = nil
      case .alert where content == .object: alertHasText = Self.hasText(json.part(value))
      default: break
      }
    }
  }

  private static func hasText(_ alert: UnsafeRawBufferPointer) -> Bool {
    var scanner = JSONScanner(alert)
    var hasText = false
    _ = scanner.enterObject()
    while let (name, value) = scanner.nextMember() {
      guard alertTexts.contains(where: alert.part(name).equals), Content(alert.part(value)) != .null else { continue }
      hasText = true
    }
    return hasText
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
  fileprivate var unlessNull: Self? { self == .null ? nil : self }

  /// Creates the kind of a value.
  fileprivate init(_ json: UnsafeRawBufferPointer) {
    switch json.first {
    case UInt8(ascii: "{"): self = .object
    case UInt8(ascii: "["): self = .array
    case UInt8(ascii: "\""): self = json.count == 2 ? .emptyText : .text
    case UInt8(ascii: "t"): self = .yes
    case UInt8(ascii: "f"): self = .no
    case UInt8(ascii: "n"): self = .null
    default: self = json.count == 1 && json[0] == UInt8(ascii: "1") ? .yes : .number
    }
  }
}

/// The checks of the body (Protocol.md, section 8.2): it is present and within the limit of section 6.1. APNs does not
/// interpret it (section 6.2).
extension Rulebook {
  func checkPayload(_ request: HTTPRequest, _ facts: PushFacts) throws(Rejection) {
    guard request.bodySize > 0 else { throw Self.noPayload }
    guard request.bodySize <= facts.payloadLimit else { throw Self.largePayload }
    guard mode == .strict, !request.hasJSONBody else { return }
    throw Self.payloadIsNoJSON
  }

  private static let noPayload = Rejection(.payloadPresent, .payloadEmpty) { _, _ in
    "the push has no body: send the payload as JSON"
  }
  private static let largePayload = Rejection(
    .payloadSize, .payloadTooLarge,
    detail: .ofBody { facts, bodySize in
      "the body has \(bodySize) bytes, at most \(facts.payloadLimit) are allowed for "
        + (facts.payloadLimit == PushType.usualPayloadLimit ? "this push type: shorten it" : "VoIP: shorten it")
    })
  private static let payloadIsNoJSON = Rejection(.payloadSyntax, .payloadEmpty) { _, _ in
    "the body is not JSON, which rules \"strict\" reject (APNs responds with 200 and the device shows nothing)"
  }
}

extension HTTPRequest {
  /// Whether the body is JSON, as `JSONText` defines it for everything that reads a payload.
  var hasJSONBody: Bool { JSONText.problem(in: body) == nil }
}
