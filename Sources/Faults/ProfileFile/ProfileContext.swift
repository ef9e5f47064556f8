import APNSMockFaultModel
internal import APNSMockNotation

/// What the schemas of profiles and rules need besides the text: the parameters, and the rule that is being parsed.
final class ProfileContext {
  let parameters: ParameterSet
  /// The injection point of the rule that is being parsed; nil if it is invalid, or outside of rules.
  var injectionPoint: InjectionPoint?
  /// The stage of the rule that is being parsed.
  var stage = Rule.Stage.afterValidation

  init(_ parameters: ParameterSet) { self.parameters = parameters }

  /// Returns a parser of a profile or rule.
  static func parser(file: String, problems: ProblemList, parameters: ParameterSet) -> SchemaParser {
    SchemaParser(file: file, problems: problems, context: ProfileContext(parameters)) { parser, node, scalar, type in
      guard scalar.text.contains("${") else { return scalar }
      guard let name = ParameterSet.name(in: scalar.text) else {
        parser.fail(
          node,
          "\"\(scalar.text.shortened)\": a parameter must be the whole value, \"${name}\", not a part of it",
          hint: "move the whole value into the parameter")
        return nil
      }
      return parser.value(ofParameter: name, at: node, as: type)
    }
  }
}

extension SchemaParser {
  var profile: ProfileContext? { context as? ProfileContext }

  /// The injection point of the rule that is being parsed; nil if it is invalid, or outside of rules.
  var injectionPoint: InjectionPoint? { profile?.injectionPoint }

  /// Returns the name of the parameter that a value refers to.
  func parameterName(_ node: SchemaNode?) -> String? {
    guard case .scalar(let scalar)? = node?.content else { return nil }
    return ParameterSet.name(in: scalar.text)
  }

  /// Returns whether a value is a number or refers to a parameter of type int.
  func isNumber(_ node: SchemaNode) -> Bool {
    guard case .scalar(let scalar) = node.content else { return false }
    if let name = ParameterSet.name(in: scalar.text) { return profile?.parameters.all[name]?.parameter.kind == .int }
    return !scalar.isString && YAMLScalarKind(scalar.text) == .number
  }

  fileprivate func value(ofParameter name: String, at node: SchemaNode, as type: ScalarType) -> Scalar? {
    guard let parameters = profile?.parameters else { return nil }
    guard let entry = parameters.all[name] else {
      if let absence = parameters.absence {
        fail(node, "\"${\(name.shortened)}\": \(absence)")
      } else {
        let hint =
          Self.guess(name, among: parameters.order).map {
            $0.replacing("\"?", with: "}\"?").replacing("\"", with: "\"${", maxReplacements: 1)
          }
          ?? (parameters.order.isEmpty
            ? "the profile defines no parameters" : "the parameters are \(parameters.order.joined(separator: ", "))")
        fail(node, "unknown parameter \"\(name.shortened)\"", hint: hint)
      }
      return nil
    }
    parameters.change(name) { $0.isUsed = true }
    guard !entry.isBroken else { return nil }
    let kind = entry.parameter.kind
    guard type.kinds.contains(kind) else {
      fail(
        node, "the parameter \"\(name)\" is of type \(kind.rawValue), expected \(type.description)",
        hint: "make its type \(type.kinds.map(\.rawValue).joinedWithOr)")
      return nil
    }
    return Scalar(text: entry.parameter.value, isString: kind == .string, parameter: name)
  }

  /// Parses the name of a profile or a rule.
  func parseName(_ node: SchemaNode) -> String? {
    guard let text = parseText(node, pluralName: "names") else { return nil }
    if let problem = ProfileName.problem(with: text) {
      fail(
        node, "\"\(text.shortened)\": \(problem)", hint: ProfileName.repaired(text).map { "did you mean \"\($0)\"?" })
      return nil
    }
    return text
  }
}

extension Schema<String> {
  /// The name of a profile or rule.
  static let name = Schema(
    form: .name, parse: { $0.parseName($1) }, write: { $1.string($0) })
}

extension SchemaForm {
  static let name = SchemaForm.text(pattern: "^[a-z0-9][a-z0-9-]{0,63}$")
  /// The map `when`.
  static let condition = SchemaForm.reference("condition")
  /// A map with one action.
  static let action = SchemaForm.reference("action")
  /// A map with one action and an optional weight.
  static let choice = SchemaForm.reference("choice")
  /// A map whose keys are APNs settings.
  static let settings = SchemaForm.reference("apns")
}

extension SchemaParser.ScalarType {
  /// The types of the parameters that may be used for the value.
  fileprivate var kinds: [Profile.Parameter.Kind] {
    switch self {
    case .text, .word: [.string]
    case .integer: [.int]
    case .number: [.int, .probability]
    case .probability: [.probability]
    case .duration: [.duration]
    case .flag: [.bool]
    case .any, .anyText: Profile.Parameter.Kind.allCases
    }
  }
}

/// The rules for names of profiles and rules, which are used in URLs, on command lines and in records.
package enum ProfileName {
  /// Returns why a text is not a valid name, in words; nil if it is valid.
  package static func problem(with text: String) -> String? {
    let isFine =
      (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { isAllowed($0) }
      && text.utf8.first != UInt8(ascii: "-")
    return isFine ? nil : "a name is lower-case letters, digits and hyphens, at most 64, and no hyphen in front"
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "-") || byte.isLetterOrDigit && asciiLowercased(byte) == byte
  }

  /// Returns the valid name most similar to an invalid one.
  static func repaired(_ text: String) -> String? {
    let bytes = text.utf8.prefix(64).map { byte in
      let small = asciiLowercased(byte)
      return isAllowed(small) ? small : UInt8(ascii: "-")
    }
    let name = String(decoding: bytes.drop { $0 == UInt8(ascii: "-") }, as: UTF8.self)
    return problem(with: name) == nil ? name : nil
  }
}

extension UInt8 {
  /// Whether the byte is an ASCII letter or digit.
  var isLetterOrDigit: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: false
    }
  }
}

extension Duration {
  /// The duration in seconds.
  var inSeconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}
