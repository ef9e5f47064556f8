internal import Hummingbird
internal import Inbox
internal import MockAPNS

/// The names and values of a request's query string, decoded, in their order.
struct QueryParameters {
  private(set) var all: [(name: String, value: String)] = []

  /// - Throws: `Problem` (400) for a broken percent escape.
  init(_ request: Request) throws(Problem) {
    for pair in (request.uri.query ?? "").split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      all.append((name: try Self.decoded(parts[0]), value: parts.count > 1 ? try Self.decoded(parts[1]) : ""))
    }
  }

  /// Takes the parameter `name` out.
  ///
  /// - Throws: `Problem` (400) if it is there more than once.
  mutating func take(_ name: String) throws(Problem) -> String? {
    let values = all.filter { $0.name == name }
    all.removeAll { $0.name == name }
    guard values.count <= 1 else {
      throw .badRequest("the query has \(name) \(values.count) times", hint: "Say it once.")
    }
    return values.first?.value
  }

  /// Takes the parameter `name` out, which is on or off.
  ///
  /// - Throws: `Problem` (400) for any other value.
  mutating func takeFlag(_ name: String) throws(Problem) -> Bool {
    switch try take(name) {
    case nil, "0", "false": return false
    case "1", "true": return true
    case let other?: throw .badRequest("\(name) cannot be \"\(other.prefix(80))\"", hint: "It is 1, or left out.")
    }
  }

  private static func decoded(_ text: Substring) throws(Problem) -> String {
    guard let bytes = bytes(text.utf8), let decoded = String(validating: bytes, as: UTF8.self) else {
      throw .badRequest(
        "the query has \"\(text)\", which is not percent-encoded UTF-8",
        hint: "Encode each name and value, a percent sign as %25.")
    }
    return decoded
  }

  /// What the escapes stand for; nil if there is a percent sign without two hexadecimal digits after it.
  private static func bytes(_ text: Substring.UTF8View) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
      case UInt8(ascii: "%"):
        guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else { return nil }
        bytes.append(high << 4 | low)
      default: bytes.append(byte)
      }
    }
    return bytes
  }

  private static func digit(_ character: UInt8) -> UInt8? {
    Character(Unicode.Scalar(character)).hexDigitValue.map(UInt8.init)
  }
}

extension ServerState {
  /// What filters mean on this server now.
  ///
  /// - Parameter snapshot: the pushes that `is:duplicate` looks for; nil where a filter is about later ones.
  func filterContext(_ snapshot: InboxSnapshot?) -> FilterContext {
    FilterContext(now: clock.now, rulebook: rulebook, snapshot: snapshot, inbox: inbox, known: knownNames)
  }
}
