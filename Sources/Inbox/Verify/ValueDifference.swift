internal import APNSMockRules
internal import APNSMockFaultModel
internal import APNSMockHTTPMessage
internal import APNSMockNotation
internal import APNSMockPushQuery

/// Explains differences between values that are easily mistaken for equal.
enum ValueDifference {
  /// Returns a short explanation; nil if the values are simply different.
  static func hint(wanted: JSONValue, found: JSONValue) -> String? {
    switch (wanted, found) {
    case (.text(let wanted), .text(let found)): hint(wanted: wanted, found: found)
    case (.number(let wanted), .text(let found)) where same(wanted, found): "a string, not a number"
    case (.text(let wanted), .number(let found)) where same(wanted, found): "a number, not a string"
    case (.flag(let wanted), .text(let found)) where found.lowercased() == String(wanted): "a string, not a Boolean"
    case (.text(let wanted), .flag(let found)) where wanted.lowercased() == String(found): "a Boolean, not a string"
    case (.flag(true), .number("1")), (.flag(false), .number("0")): "a number, not a truth value"
    case (.number("1"), .flag(true)), (.number("0"), .flag(false)): "a truth value, not a number"
    case (_, .list(let list)) where list.elements.count == 1 && list.elements.contains { wanted.isSame(as: $0) }:
      "in a list"
    default: nil
    }
  }

  private static func same(_ one: String, _ other: String) -> Bool {
    guard let one = QueryNumber(one), let other = QueryNumber(other) else { return false }
    return one == other
  }

  private static func hint(wanted: String, found: String) -> String? {
    if wanted.utf8.elementsEqual(found.utf8) { return nil }
    // String comparison ignores differences of Unicode normalization.
    if wanted == found { return "another Unicode normal form" }
    if let hint = edgeHint(wanted, found) { return hint }
    if wanted.lowercased() == found.lowercased() { return "upper and lower case" }
    let (plainWanted, plainFound) = (wanted.collapsed, found.collapsed)
    if plainWanted == plainFound { return "white space" }
    if plainWanted.lowercased() == plainFound.lowercased() { return "white space, and upper and lower case" }
    if wanted.visible == found.visible { return "an invisible character" }
    return nil
  }

  /// Returns a hint about white space at the ends.
  private static func edgeHint(_ wanted: String, _ found: String) -> String? {
    if wanted.withoutEndSpace == found.withoutEndSpace {
      return wanted.unicodeScalars.count < found.unicodeScalars.count ? "trailing space" : "trailing space is missing"
    }
    if wanted.withoutStartSpace == found.withoutStartSpace {
      return wanted.unicodeScalars.count < found.unicodeScalars.count ? "leading space" : "leading space is missing"
    }
    return wanted.withoutStartSpace.withoutEndSpace == found.withoutStartSpace.withoutEndSpace
      ? "space at both ends" : nil
  }

  /// Returns why a payload has no value at a pointer; nil if no reason is known.
  static func hint(pointer: String, in record: Record) -> String? {
    if record.payloadProblem != nil { return "the body is not JSON" }
    var parent = pointer[...]
    while let slash = parent.lastIndex(of: "/") {
      let name = String(parent[parent.index(after: slash)...]).replacing("~1", with: "/").replacing("~0", with: "~")
      parent = parent[..<slash]
      guard let value = JSONPointer(String(parent)).flatMap({ pointer in record.withBody { pointer.value(in: $0) } })
      else { continue }
      let location = parent.isEmpty ? "the payload" : ReportText.shortened(String(parent))
      switch value {
      case .object(let object):
        let near = Spelling.nearest(to: String(name.prefix(40)), among: object.entries.map(\.name))
        return near.map { "\(location) has \(ReportText.quoted($0))" }
      case .list(let list): return "\(location) is a list of \(list.elements.count)"
      case .text: return "\(location) is a string"
      case .number: return "\(location) is a number"
      case .flag: return "\(location) is a truth value"
      case .null: return "\(location) is null"
      }
    }
    return nil
  }
}

extension String {
  fileprivate var withoutEndSpace: String {
    var scalars = unicodeScalars
    while let last = scalars.last, last.properties.isWhitespace { scalars.removeLast() }
    return String(scalars)
  }

  fileprivate var withoutStartSpace: String {
    String(String.UnicodeScalarView(unicodeScalars.drop { $0.properties.isWhitespace }))
  }

  /// The string with each run of white space replaced by one space.
  fileprivate var collapsed: String {
    unicodeScalars.split { $0.properties.isWhitespace }.map { String($0) }.joined(separator: " ")
  }

  /// The string without characters of no width.
  fileprivate var visible: String {
    String(
      String.UnicodeScalarView(
        unicodeScalars.filter { scalar in
          scalar.properties.generalCategory != .format && scalar.properties.generalCategory != .control
        }))
  }
}

/// Formats values for reports: short, on one line, with invisible characters escaped.
enum ReportText {
  /// The maximum length of a value, in Unicode scalars.
  static let limit = 80

  /// Returns a text in quotation marks.
  static func quoted(_ text: String) -> String { "\"" + escaped(text.unicodeScalars.prefix(limit), text) + "\"" }

  /// Returns a text without quotation marks.
  static func shortened(_ text: String) -> String { escaped(text.unicodeScalars.prefix(limit), text) }

  /// Returns a sentence on one line, at most four times the limit.
  static func line(_ text: String) -> String { escaped(text.unicodeScalars.prefix(4 * limit), text) }

  /// Returns a value: texts in quotation marks, everything else as JSON.
  static func value(_ value: JSONValue) -> String {
    if case .text(let text) = value { return quoted(text) }
    return shortened(json(value))
  }

  /// Returns two texts in quotation marks. If they are long, both start shortly before their first difference.
  static func quoted(_ one: String, _ other: String) -> (String, String) {
    let (first, second) = (Array(one.unicodeScalars), Array(other.unicodeScalars))
    guard max(first.count, second.count) > limit else { return (quoted(one), quoted(other)) }
    let same = zip(first, second).prefix { $0 == $1 }.count
    let start = same < limit - 20 ? 0 : same - 20
    func part(_ scalars: [Unicode.Scalar]) -> String {
      let rest = scalars.dropFirst(start)
      return "\"" + (start > 0 ? "…" : "") + rest.prefix(limit).map(escaped).joined()
        + (rest.count > limit ? "…" : "") + "\""
    }
    return (part(first), part(second))
  }

  /// Returns a list such as `seq 4711` or `seq 3, 4 and 5 more`.
  static func seqs(_ seqs: [PushName], of count: Int? = nil) -> String {
    "seq " + seqs.map(\.description).listed(5, of: count)
  }

  static func json(_ value: JSONValue) -> String {
    var writer = JSONWriter(capacity: 64)
    value.write(to: &writer)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  private static func escaped(_ scalars: String.UnicodeScalarView.SubSequence, _ whole: String) -> String {
    scalars.map(escaped).joined() + (scalars.endIndex < whole.unicodeScalars.endIndex ? "…" : "")
  }

  /// Escapes line breaks, and characters that are invisible or reverse the following text.
  private static func escaped(_ scalar: Unicode.Scalar) -> String {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator, .format: scalar.escaped(asASCII: true)
    case .spaceSeparator where scalar != " ": scalar.escaped(asASCII: true)
    default: String(Character(scalar))
    }
  }
}

extension Record {
  /// Returns the record's values for the subject of a condition; empty if it has none.
  func values(of subject: QuerySubject, for filter: borrowing Filter) -> [JSONValue] {
    switch subject {
    case .header(let name): headerValues(name)
    case .payload(let pointer):
      payloadProblem == nil ? withBody { pointer.value(in: $0) }.map { [$0] } ?? [] : []
    case .field(.finding): findingNames(filter)
    case .field(.is):
      states(isDuplicate: filter.isDuplicate(seq)).map(JSONValue.text)
    case .field(let field): values(of: field)
    }
  }

  private func values(of field: QueryField) -> [JSONValue] {
    func text(_ text: String?) -> [JSONValue] { text.map { [.text($0)] } ?? [] }
    func number(_ number: (some BinaryInteger)?) -> [JSONValue] { number.map { [.number(String($0))] } ?? [] }
    func decoded(_ bytes: UnsafeRawBufferPointer?) -> String? { bytes.map { TokenRedaction.text($0) } }
    return switch field {
    case .deviceToken: text(deviceToken)
    case .topic: text(withTopic(decoded))
    case .status: number(sentResponse.status)
    case .reason: text(sentReason)
    case .outcome: text(outcome.rawValue)
    case .decision: text(end.decision.rawValue)
    case .ending: text(end.ending.rawValue)
    case .violation: text(wireDetails?.violationText)
    case .accepted: [.flag(accepted)]
    case .delivery: text(delivery?.text)
    case .pushType: text(withHeader(facts.pushTypeText, decoded))
    case .priority: number(priority)
    case .apnsID: text(withID(decoded))
    case .collapseID: text(withHeader(facts.collapseID, decoded))
    case .pushKey: text(pushKey.text)
    case .attempt: number(attempt)
    case .rule: wireDetails?.injections.map { .text($0.rule) } ?? []
    case .profile: wireDetails?.injections.compactMap(\.profile).map(JSONValue.text) ?? []
    case .connection: text(connection.id)
    case .listener: number(connection.listener)
    case .environment: text(connection.environment.rawValue)
    case .requestKind: text(kind.rawValue)
    case .keyID: text(verdict?.token?.keyID)
    case .teamID: text(verdict?.token?.teamID)
    case .since, .until: text(TimestampFormat.text(receivedAt))
    case .size, .sizeGreater, .sizeLess: number(bodySize)
    case .finding, .run, .test, .is, .text: []
    }
  }

  private func findingNames(_ filter: borrowing Filter) -> [JSONValue] {
    guard let rulebook = filter.rulebook else { return [] }
    return findingKinds(by: rulebook, in: filter.inbox).map { .text($0.rawValue) }
  }

  private func headerValues(_ wanted: String) -> [JSONValue] {
    withHeaders { packed in
      var values: [JSONValue] = []
      HeaderList.forEachField(in: packed) { name, value in
        guard packed[name.indices].elementsEqual(wanted.utf8) else { return }
        values.append(.text(Self.shown(packed[value], of: wanted)))
      }
      return values
    }
  }
}

extension Record {
  /// The push type and the beginning of the payload, on one line.
  package var contentText: String {
    "\(pushType.map(ReportText.shortened) ?? "no apns-push-type")  "
      + (body.isEmpty ? "no payload" : ReportText.line(String(decoding: body.prefix(1000), as: UTF8.self)))
  }
}
