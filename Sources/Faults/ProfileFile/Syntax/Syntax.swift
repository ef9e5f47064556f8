import FaultModel
internal import APNSRules
internal import HTTP2Session
internal import Notation
internal import TLSEngine

/// The syntax of a value in a profile file: parses, writes and describes it.
struct Syntax<Value>: Sendable {
  /// A description for the JSON Schema and the reference page.
  let form: ValueForm
  /// Parses a value; returns nil after recording an error.
  let parse: @Sendable (ProfileParser, ProfileNode) -> Value?
  /// Writes a value so that `parse` reads it back.
  let write: @Sendable (Value, inout JSONWriter) -> Void

  /// The syntax of an optional value that is only written if it is present.
  var optional: Syntax<Value?> {
    Syntax<Value?>(
      form: form, parse: { parser, node in parse(parser, node).map(Optional.some) },
      write: { value, writer in if let value { write(value, &writer) } })
  }

  /// Returns a scalar value as Markdown; nil for an empty text, list or map.
  func markdown(_ value: Value) -> String? {
    var writer = JSONWriter()
    write(value, &writer)
    let text = String(decoding: writer.bytes, as: UTF8.self)
    guard text != "\"\"", let first = text.first, first != "{", first != "[" else { return nil }
    return "`\(text.replacing("\"", with: ""))`"
  }
}

/// The form of a value, for the JSON Schema and the reference page.
indirect enum ValueForm: Sendable {
  /// Any text.
  case text
  /// A name of lower-case letters, digits and hyphens.
  case name
  /// One of a fixed set of words.
  case word([String])
  case integer(ClosedRange<Int>)
  case number(NumberRange)
  /// A number from 0 to 1.
  case probability
  /// A duration, such as `500ms` or `1h30m`; if `isPositive`, longer than zero.
  case duration(isPositive: Bool)
  /// A point in time: `now`, `-24h`, RFC 3339, or `{ago: …}`.
  case time
  case flag
  /// Any scalar: text, number or boolean.
  case scalar
  /// A map or list, sent as JSON.
  case json
  case list(ValueForm)
  case map(MapDescription)
  /// A map with arbitrary keys.
  case named(ValueForm)
  /// A map whose keys are APNs settings.
  case settings
  /// A requirement on a value of the traffic.
  case match(Matcher)
  /// The map `when`.
  case condition
  /// A map with one action.
  case action
  /// A map with one action and an optional weight.
  case choice
  case either(ValueForm, ValueForm)

  /// The kinds of match for a value of the traffic.
  enum Matcher: Sendable {
    /// Equality, `prefix`, `glob`, `in`, `present`. The associated words are examples of values.
    case text([String])
    /// Equality, `glob`, `in` with addresses and blocks.
    case address
    /// Equality, `in`, `gt`, `lt`, `present`.
    case integer(ClosedRange<Int>)
    /// Equality, `in`, `gt`, `lt`, `present` with a number of bytes.
    case size
    /// `gt`, `lt`, `present`.
    case duration
    /// A JSON scalar, with all kinds of match.
    case json
  }
}

/// The allowed values of a number.
struct NumberRange: Sendable {
  let minimum: Double
  /// Whether the minimum itself is not allowed.
  let isMinimumExcluded: Bool
  let maximum: Double

  static func above(_ minimum: Double, to maximum: Double = 1e12) -> NumberRange {
    NumberRange(minimum: minimum, isMinimumExcluded: true, maximum: maximum)
  }

  static func from(_ minimum: Double, to maximum: Double = 1e12) -> NumberRange {
    NumberRange(minimum: minimum, isMinimumExcluded: false, maximum: maximum)
  }

  func contains(_ value: Double) -> Bool {
    (isMinimumExcluded ? value > minimum : value >= minimum) && value <= maximum
  }
}

// MARK: - Scalars

extension Syntax<String> {
  static let text = Syntax(form: .text, parse: { $0.parseText($1) }, write: { $1.string($0) })
  /// The name of a profile or rule.
  static let name = Syntax(form: .name, parse: { $0.parseName($1) }, write: { $1.string($0) })
  /// The name of a header field, converted to lower case.
  static let headerName = Syntax(
    form: .text,
    parse: { parser, node in
      parser.parseText(node).flatMap { parser.parseHeaderName($0, at: node.position, path: node.path) }
    }, write: { $1.string($0) })

  /// A text, or a map or list that is converted to JSON.
  ///
  /// - Parameter limit: The maximum length in bytes.
  static func textOrJSON(limit: Int) -> Syntax {
    Syntax(form: .either(.text, .json), parse: { $0.parseTextOrJSON($1, limit: limit) }, write: { $1.string($0) })
  }
}

extension Syntax<String?> {
  /// A text, or null.
  static let nullableText = Syntax(
    form: .text, parse: { parser, node in node.isEmpty ? .some(nil) : parser.parseText(node).map(Optional.some) },
    write: { text, writer in if let text { writer.string(text) } else { writer.null() } })
}

extension Syntax<Bool> {
  static let flag = Syntax(form: .flag, parse: { $0.parseFlag($1) }, write: { $1.bool($0) })
}

extension Syntax<Double> {
  static func number(_ range: NumberRange) -> Syntax {
    Syntax(form: .number(range), parse: { $0.parseNumber($1, in: range) }, write: { $1.shortNumber($0) })
  }

  static let probability = Syntax(
    form: .probability, parse: { $0.parseProbability($1) }, write: { $1.shortNumber($0) })
}

extension Syntax<Duration> {
  /// A duration, at least zero.
  static let duration = Syntax(
    form: .duration(isPositive: false), parse: { $0.parseDuration($1) }, write: { $1.string(DurationFormat.text($0)) })
  /// A duration longer than zero.
  static let positiveDuration = Syntax(
    form: .duration(isPositive: true), parse: { $0.parseDuration($1, isPositive: true) }, write: duration.write)
}

extension Syntax<Duration?> {
  private static let never = "never"

  /// A duration, or `never`, which is nil.
  static let durationOrNever = Syntax(
    form: .either(.duration(isPositive: false), .word([never])),
    parse: { parser, node in
      if case .scalar(let scalar) = node.content, scalar.text == never { return .some(nil) }
      return parser.parseDuration(node).map { .some($0) }
    }, write: { $1.string($0.map(DurationFormat.text) ?? never) })
}

extension Syntax where Value: FixedWidthInteger & Sendable {
  static func integer(_ range: ClosedRange<Value>) -> Syntax {
    let range = Int(clamping: range.lowerBound)...Int(clamping: range.upperBound)
    return Syntax(
      form: .integer(range), parse: { $0.parseInteger($1, in: range).flatMap(Value.init(exactly:)) },
      write: { $1.integer($0) })
  }
}

extension Syntax<Int> {
  /// A count of at least `minimum`.
  static func count(from minimum: Int) -> Syntax { integer(minimum...Int(Int32.max)) }
}

extension Syntax<UInt64> {
  /// A 64-bit number, one bit more than `integer` supports.
  static let seed = Syntax(
    form: .integer(0...Int.max),
    parse: { parser, node in
      guard let scalar = parser.parseScalar(node, as: .integer) else { return nil }
      if !scalar.isString, let seed = UInt64(scalar.text) { return seed }
      parser.fail(node, scalar, "\(scalar.text.shortened) is not a whole number from 0 to 2⁶⁴−1")
      return nil
    }, write: { $1.integer($0) })
}

extension Syntax where Value: RawRepresentable<String> & CaseIterable & Equatable & Sendable {
  /// Any value of the enumeration.
  static var word: Syntax { word(Array(Value.allCases)) }

  /// One of some values of the enumeration.
  static func word(_ allowed: [Value]) -> Syntax {
    Syntax(
      form: .word(allowed.map(\.rawValue)), parse: { $0.parseWord($1, allowed: allowed) },
      write: { $1.string($0.rawValue) })
  }
}

extension Syntax where Value: FixedWidthInteger & Sendable {
  /// A number that has a name in a protocol: either of them.
  fileprivate static func code(
    names: [String], code: @escaping @Sendable (String) -> Value?, name: @escaping @Sendable (Value) -> String?
  ) -> Syntax {
    let number = integer(0...Value.max)
    return Syntax(
      form: .either(.word(names), number.form),
      parse: { parser, node in
        if parser.isNumber(node) { return number.parse(parser, node) }
        guard let scalar = parser.parseScalar(node, as: .word) else { return nil }
        if let code = code(scalar.text) { return code }
        parser.failWord(node, scalar, among: names)
        return nil
      },
      write: { code, writer in
        if let name = name(code) { writer.string(name) } else { writer.integer(code) }
      })
  }

}

extension Syntax<UInt32> {
  /// An HTTP/2 error code.
  static let errorCode = code(
    names: HTTP2ErrorCode.names, code: { HTTP2ErrorCode(name: $0)?.rawValue },
    name: { HTTP2ErrorCode(rawValue: $0)?.name })
}

extension Syntax<UInt8> {
  /// A TLS alert.
  static let alert = code(names: TLSAlert.names, code: TLSAlert.code(named:), name: TLSAlert.name(of:))
}

// MARK: - Lists and maps

extension Syntax {
  /// A map with known keys.
  static func map(_ map: MapSyntax<Value>) -> Syntax where Value: Sendable {
    .map(map, make: { $0 }, values: { $0 })
  }

  /// A map with known keys, which are properties of another type than `Value`.
  ///
  /// - Parameters:
  ///   - make: Creates the value of the properties.
  ///   - values: Returns the properties of a value; nil for a value that this map cannot express.
  static func map<Root: Sendable>(
    _ map: MapSyntax<Root>, make: @escaping @Sendable (Root) -> Value, values: @escaping @Sendable (Value) -> Root?
  ) -> Syntax {
    Syntax(
      form: .map(map.description), parse: { parser, node in map.parse(node, parser).map(make) },
      write: { value, writer in
        writer.object { writer in
          if let root = values(value) { map.writeMembers(of: root, to: &writer) }
        }
      })
  }
}

extension JSONWriter {
  /// Writes a number, without a fraction if it is whole.
  mutating func shortNumber(_ value: Double) {
    if let whole = Int64(exactly: value) { integer(whole) } else { number(value) }
  }
}
