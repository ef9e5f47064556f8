package import APNSMockFaultModel
internal import APNSMockNotation

/// The definition of a parameter in one text. A profile that extends another may override parts of it.
struct ParameterDeclaration {
  /// A value as written, with its position.
  struct Literal {
    let scalar: SchemaParser.Scalar
    let node: SchemaNode
    let parser: SchemaParser
  }

  /// The keys of a parameter.
  struct Fields {
    var kind: Profile.Parameter.Kind?
    var defaultValue: Literal?
    var minimum: Literal?
    var maximum: Literal?
    var help: String?
  }

  let name: String
  let position: TextPosition
  let path: String
  let parser: SchemaParser
  var fields = Fields()
  /// Whether a key is present but invalid.
  var isBroken = false

  /// Returns the definition with missing keys taken from the one it overrides.
  func completed(by base: ParameterDeclaration) -> ParameterDeclaration {
    // Values of another type do not apply.
    guard fields.kind == nil || fields.kind == base.fields.kind else { return self }
    var declaration = self
    declaration.fields = Fields(
      kind: base.fields.kind, defaultValue: fields.defaultValue ?? base.fields.defaultValue,
      minimum: fields.minimum ?? base.fields.minimum, maximum: fields.maximum ?? base.fields.maximum,
      help: fields.help ?? base.fields.help)
    declaration.isBroken = isBroken || base.isBroken
    return declaration
  }

  /// Returns the parameter, marked as broken if it has problems, which are recorded.
  func makeEntry() -> ParameterSet.Entry {
    var isBroken = isBroken
    func fail(_ literal: Literal?, _ message: String, hint: String? = nil) {
      isBroken = true
      if let literal { return literal.parser.fail(literal.node, message, hint: hint) }
      parser.fail(at: position, path, message, hint: hint)
    }
    if fields.kind == nil, !isBroken { fail(nil, "type is missing", hint: "{type: int, default: 5}") }
    if fields.defaultValue == nil, !isBroken { fail(nil, "default is missing") }
    var parameter = Profile.Parameter(
      name: name, kind: fields.kind ?? .string, defaultValue: fields.defaultValue?.scalar.text ?? "",
      help: fields.help ?? "")
    for (literal, property) in [(fields.minimum, \Profile.Parameter.minimum), (fields.maximum, \.maximum)] {
      guard let literal, !isBroken else { continue }
      if !parameter.kind.hasBounds {
        fail(literal, "a \(parameter.kind.rawValue) has neither min nor max")
      } else if let problem = parameter.problem(with: literal.scalar.text) {
        fail(literal, problem)
      } else {
        parameter[keyPath: property] = literal.scalar.text
      }
    }
    if let literal = fields.defaultValue, !isBroken {
      if parameter.kind == .string {
        if literal.parser.text(of: literal.scalar, at: literal.node) == nil { isBroken = true }
      } else if let problem = parameter.problem(with: literal.scalar.text) {
        fail(literal, problem)
      }
    }
    return ParameterSet.Entry(
      parameter: parameter, isBroken: isBroken, file: parser.file, position: position, path: path)
  }
}

extension SchemaParser {
  /// Parses the parameters that one text defines.
  func parseParameters(_ node: SchemaNode) -> [ParameterDeclaration] {
    (parseEntries(node) ?? []).compactMap { entry in
      let value = node.member(entry)
      guard ParameterSet.isName(entry.key) else {
        fail(
          at: entry.position, value.path.shortened,
          "a parameter name has 1 to 64 lower-case letters, digits and _")
        return nil
      }
      var declaration = ParameterDeclaration(
        name: entry.key, position: entry.position, path: value.path, parser: self)
      // `rate: 0.5` overrides the default of a base profile's parameter.
      if case .scalar = value.content, !value.isEmpty {
        declaration.fields.defaultValue = Schema.literal.parse(self, value)
        declaration.isBroken = declaration.fields.defaultValue == nil
      } else if let map = ParameterDeclaration.Fields.schema.parseKeys(value, self) {
        declaration.isBroken = !map.parse(into: &declaration.fields)
      } else {
        declaration.isBroken = true
      }
      return declaration
    }
  }
}

extension Schema<ParameterDeclaration.Literal> {
  /// A literal value; a reference to a parameter is not allowed.
  static let literal = Schema(
    form: .scalar,
    parse: { parser, node in
      guard case .scalar(let scalar) = node.content, !node.isEmpty else {
        parser.fail(node, "expected a single value, not \(node.kind)")
        return nil
      }
      guard !scalar.text.contains("${") else {
        parser.fail(node, "a parameter cannot be part of another one")
        return nil
      }
      return ParameterDeclaration.Literal(
        scalar: SchemaParser.Scalar(text: scalar.text, isString: scalar.isString), node: node, parser: parser)
    }, write: { literal, writer in writer.string(literal.scalar.text) })
}

extension Profile.Parameter.Kind {
  /// Whether the values are ordered.
  var hasBounds: Bool { self == .int || self == .probability || self == .duration }

  /// Returns a value of this kind as a number; nil if it is invalid.
  func number(_ text: String) -> Double? {
    switch self {
    case .int: Int(text) == nil ? nil : WrittenNumber.value(text)
    case .probability: WrittenNumber.value(text).flatMap { (0...1).contains($0) ? $0 : nil }
    case .duration: (try? Value.duration(text))?.inSeconds
    case .string, .bool: nil
    }
  }
}

extension Profile.Parameter {
  /// Returns why a text is not a valid value, in words; nil if it is valid.
  package func problem(with text: String) -> String? {
    let shown = text.shortened
    switch kind {
    case .string: return text.utf8.count <= 1024 ? nil : "longer than 1024 bytes"
    case .bool: return (try? Value.flag(text)) == nil ? "\(shown) is neither true nor false" : nil
    case .int, .probability, .duration: break
    }
    guard let value = kind.number(text) else {
      return switch kind {
      case .int:
        "\(shown) is not a whole number" + (WrittenNumber.percent(text) == nil ? "" : ": remove the percent sign")
      case .probability:
        "\(shown) is not a number in 0..1" + (WrittenNumber.share(text).map { ": did you mean \($0)?" } ?? "")
      default:
        "\(shown) is not a duration"
          + (WrittenNumber.value(text) == nil ? " such as 500ms, 5s or 2m" : ", did you mean \(shown)s?")
      }
    }
    if let minimum, let least = kind.number(minimum), value < least { return "\(shown) is less than \(minimum)" }
    if let maximum, let most = kind.number(maximum), value > most { return "\(shown) is more than \(maximum)" }
    return nil
  }
}

/// The parameters of a profile and their values while its files are parsed.
final class ParameterSet {
  /// A parameter and its definition.
  struct Entry {
    var parameter: Profile.Parameter
    /// Whether a problem was already recorded, so that uses of the parameter need no validation.
    var isBroken: Bool
    /// The file that defines the parameter.
    let file: String
    let position: TextPosition
    let path: String
    var isUsed = false
  }

  private(set) var all: [String: Entry] = [:]
  /// The names in the order of the files.
  private(set) var order: [String] = []

  /// The reason why no parameters can be defined, for added rules; nil if they can.
  let absence: String?

  init(absence: String? = nil) { self.absence = absence }

  /// Adds a parameter unless a profile that extends this one has defined it.
  func define(_ entry: Entry) {
    let name = entry.parameter.name
    guard all[name] == nil else { return }
    all[name] = entry
    order.append(name)
  }

  func change(_ name: String, _ change: (inout Entry) -> Void) {
    if var entry = all[name] {
      change(&entry)
      all[name] = entry
    }
  }

  /// Returns the parameter that a value refers to, such as `limit` for `${limit}`; nil if the value is not a
  /// reference.
  static func name(in text: String) -> String? {
    guard text.hasPrefix("${"), text.hasSuffix("}") else { return nil }
    let name = text.dropFirst(2).dropLast()
    return name.contains("${") || name.contains("}") ? nil : String(name)
  }

  /// Returns whether a text is a valid name of a parameter.
  static func isName(_ name: String) -> Bool {
    (1...64).contains(name.utf8.count)
      && name.utf8.allSatisfy { asciiLowercased($0) == $0 && ($0.isLetterOrDigit || $0 == UInt8(ascii: "_")) }
  }
}
