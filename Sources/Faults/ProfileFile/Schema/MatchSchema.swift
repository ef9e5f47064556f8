import APNSMockFaultModel
internal import APNSMockRules
internal import APNSMockNotation

/// The keys of a requirement that is written as a map.
enum MatchKey: String, CaseIterable {
  case equals, prefix, glob
  case oneOf = "in"
  case present
  case above = "gt"
  case below = "lt"

  static let description = MapDescription(
    name: "match",
    fields: allCases.map {
      FieldDescription($0.rawValue, $0.form, $0.summary)
    })

  private var form: SchemaForm {
    switch self {
    case .equals, .above, .below: .scalar
    case .prefix, .glob: .text()
    case .oneOf: .list(.scalar)
    case .present: .flag
    }
  }

  private var summary: String {
    switch self {
    case .equals: "The value is exactly this."
    case .prefix: "The value begins with this text."
    case .glob: "The value matches this pattern, in which `*` matches any text."
    case .oneOf: "The value is one of these."
    case .present: "Whether there is a value."
    case .above: "The value is greater than this."
    case .below: "The value is less than this."
    }
  }
}

extension SchemaParser {
  /// Parses a requirement on a subject.
  func parseMatch(_ node: SchemaNode, of subject: Condition.Subject) -> Condition.Match? {
    switch node.content {
    case .scalar:
      guard !subject.isDuration else {
        fail(
          node,
          subject == .idle ? "an idle time is compared with a bound" : "an age cannot be compared with an exact value",
          hint: "write {gt: 30m} or {lt: 30m}")
        return nil
      }
      if subject == .address { return parseAddress(node) }
      return parseValue(node, of: subject).map(Condition.Match.equals)
    case .list:
      fail(node, "expected a value, not a list", hint: "write {in: […]}")
      return nil
    case .map: break
    }
    guard let entries = parseEntries(node) else { return nil }
    var values: [(key: MatchKey, value: SchemaNode)] = []
    for entry in entries {
      if let key = MatchKey(rawValue: entry.key) {
        values.append((key, node.member(entry)))
      } else {
        failUnknown(entry, in: node, among: MatchKey.allCases.map(\.rawValue))
      }
    }
    values.sort { MatchKey.allCases.firstIndex(of: $0.key) ?? 0 < MatchKey.allCases.firstIndex(of: $1.key) ?? 0 }
    guard let (key, value) = values.first else {
      fail(
        node, "the requirement is missing", hint: "one of \(subject.matchKeys.map(\.rawValue).joined(separator: ", "))")
      return nil
    }
    if let other = values.dropFirst().first, !(key == .above && other.key == .below) {
      fail(
        at: other.value.keyPosition, other.value.path, "\(key.rawValue) is already specified",
        hint: "keep one of them; write a second test of the same value under not, or in another rule")
      return nil
    }
    for (key, value) in values where !subject.matchKeys.contains(key) {
      fail(
        at: value.keyPosition, value.path, "\(key.rawValue) cannot be used here",
        hint: "\(subject.matchKeys.map(\.rawValue).joinedWithOr) can")
      return nil
    }
    switch key {
    case .equals where subject == .address: return parseAddress(value)
    case .oneOf where subject == .address:
      return parseElements(value) { element in parseText(element).flatMap { parseBlock($0, element) } }
        .map(Condition.Match.within)
    case .equals: return parseValue(value, of: subject).map(Condition.Match.equals)
    case .prefix:
      return parseText(value, pluralName: subject.pluralName).map { .prefix(subject.folded($0)) }
    case .glob:
      return parseText(value, pluralName: subject.pluralName)
        .map { .glob(TextPattern($0, foldsCase: subject.foldsCase)) }
    case .oneOf: return parseElements(value) { parseValue($0, of: subject) }.map { .oneOf(Set($0)) }
    case .present: return parseFlag(value).map(Condition.Match.present)
    case .above, .below: return parseBounds(values, node, of: subject)
    }
  }

  /// Parses the elements of a list that must not be empty.
  private func parseElements<Element>(_ node: SchemaNode, _ parse: (SchemaNode) -> Element?) -> [Element]? {
    guard let elements = parseList(node) else { return nil }
    guard !elements.isEmpty else {
      fail(node, "an empty list: this can never match")
      return nil
    }
    let values = elements.map(parse)
    let valid = values.compactMap(\.self)
    return valid.count == values.count ? valid : nil
  }

  /// Parses an IP address, a CIDR block, or a pattern with `*`.
  private func parseAddress(_ node: SchemaNode) -> Condition.Match? {
    guard let text = parseText(node) else { return nil }
    if text.contains("*") { return .glob(TextPattern(text, foldsCase: true)) }
    return parseBlock(text, node).map { .within([$0]) }
  }

  private func parseBlock(_ text: String, _ node: SchemaNode) -> AddressBlock? {
    do throws(AddressBlock.Problem) {
      return try AddressBlock(text)
    } catch {
      switch error {
      case .address:
        fail(
          node, "\"\(text.shortened)\" is not an IP address or CIDR block",
          hint: "write 192.0.2.7, 10.0.0.0/8, \"fd00::/8\" or, outside of lists, a pattern such as \"10.0.*\"")
      case .prefixLength(let max):
        fail(node, "\"\(text.shortened)\" has no valid prefix length", hint: "use a number from 0 to \(max)")
      case .hostBits:
        fail(
          node, "\"\(text.shortened)\" has bits set after its prefix",
          hint: "write the first address of the block, as in 10.0.0.0/8")
      }
      return nil
    }
  }

  private func parseBounds(
    _ bounds: [(key: MatchKey, value: SchemaNode)], _ node: SchemaNode, of subject: Condition.Subject
  ) -> Condition.Match? {
    var above: Double?
    var below: Double?
    var isValid = true
    for (key, node) in bounds {
      let bound =
        switch subject.matcher {
        case .duration: parseDuration(node)?.inSeconds
        case .size: parseSize(node).map(Double.init)
        case .json: parseNumber(node, in: .from(-1e12))
        default: parseInteger(node, in: 0...Int(Int32.max)).map(Double.init)
        }
      if bound == nil { isValid = false }
      if key == .above { above = bound } else { below = bound }
    }
    guard isValid else { return nil }
    if Condition.isEmpty(above: above, below: below, of: subject) {
      fail(node, "these bounds contain no value: this can never match")
      return nil
    }
    return .between(above: above, below: below)
  }

  /// Parses a number of bytes, with or without a unit.
  private func parseSize(_ node: SchemaNode) -> Int? {
    guard let scalar = parseScalar(node, as: .integer) else { return nil }
    if let bytes = SizeFormat.bytes(scalar.text), bytes <= 1 << 40 { return bytes }
    fail(node, scalar, "\(scalar.text.shortened) is not a number of bytes", hint: "sizes are written 4096 or 4K")
    return nil
  }

  /// Parses a value to compare with, in the form in which the traffic has it.
  private func parseValue(_ node: SchemaNode, of subject: Condition.Subject) -> String? {
    switch subject {
    case .priority, .listener, .attempt, .status:
      guard case .integer(let range) = subject.matcher, let number = parseInteger(node, in: range) else { return nil }
      if subject == .priority, ![1, 5, 10].contains(number) {
        reportUnmatchable(node, "\(number)", "priorities are 10, 5 and 1")
      }
      return String(number)
    case .size: return parseSize(node).map(String.init)
    case .payload: return parseJSONValue(node)
    case .pushType:
      guard let text = parseText(node) else { return nil }
      let types = PushType.allCases.map(\.text)
      if !types.contains(text) {
        reportUnmatchable(
          node, text,
          Self.guess(text, among: types) ?? "the push types are \(types.joined(separator: ", "))")
      }
      return text
    case .environment, .kind:
      guard let text = parseText(node), case .text(let words) = subject.matcher else { return nil }
      guard words.contains(text) else {
        fail(
          node, "\"\(text.shortened)\" can never match",
          hint: Self.guess(text, among: words) ?? "expected \(words.joinedWithOr)")
        return nil
      }
      return text
    case .reason:
      guard let text = parseText(node) else { return nil }
      if Reason(text: text) == nil {
        warn(
          node, "unknown reason \"\(text.shortened)\"",
          hint: Self.guess(text, among: Reason.allCases.map(\.text)))
      }
      return text
    case .deviceToken:
      guard let text = parseText(node, pluralName: subject.pluralName) else { return nil }
      if !text.utf8.allSatisfy(Hexadecimal.isDigit) {
        reportUnmatchable(node, text, "device tokens are hexadecimal digits")
      }
      return subject.folded(text)
    default: return parseText(node, pluralName: subject.pluralName).map(subject.folded)
    }
  }

  /// Records a value that never matches: an error if APNs rejects such pushes before the rule is evaluated,
  /// otherwise a warning.
  private func reportUnmatchable(_ node: SchemaNode, _ value: String, _ hint: String) {
    if profile?.stage == .afterValidation, injectionPoint == .request {
      fail(node, "\"\(value.shortened)\" can never match: APNs rejects it before this rule is evaluated", hint: hint)
    } else {
      warn(node, "not a value that APNs accepts: \"\(value.shortened)\"", hint: hint)
    }
  }

  /// Parses a JSON string, number or boolean and returns its text.
  private func parseJSONValue(_ node: SchemaNode) -> String? {
    guard let scalar = parseScalar(node, as: .any) else { return nil }
    if scalar.isString || scalar.text == "true" || scalar.text == "false" { return scalar.text }
    if WrittenNumber.value(scalar.text) != nil { return scalar.text }
    return text(of: scalar, at: node)
  }
}
