package import FaultModel
internal import APNSRules
package import Notation

extension Condition {
  static let payloadKey = "payload"
  static let headerKey = "header"
  static let providerTokenKey = "jwt"
  static let queryKey = "q"
  private static let notKey = "not"

  /// The syntax of `when`.
  static let syntax: MapSyntax<Condition> = MapSyntax(
    "condition", Condition(),
    .test(.deviceToken, "The device token, in any case. Quote it: YAML reads some tokens as numbers."),
    .test(.topic, "`apns-topic`; without it, the only topic of the provider certificate."),
    .test(.pushType, "`apns-push-type`."),
    .test(.priority, "`apns-priority`; 10 if the header field is absent."),
    .test(.collapseID, "`apns-collapse-id`."),
    .test(.apnsID, "`apns-id` as the client sent it."),
    .custom(
      payloadKey, \.self, .named(.match(.json)),
      "Values of the payload by JSON pointer, as in `/aps/alert/title: Hello`.",
      parse: { parser, node, condition in
        guard let entries = parser.parseEntries(node) else { return false }
        return entries.reduce(true) { isValid, entry in
          guard let pointer = parser.parsePointer(entry, in: node) else { return false }
          return parser.parseTest(node.member(entry), of: .payload(pointer: pointer), into: &condition) && isValid
        }
      },
      write: { condition, writer in
        condition.writeTests(in: payloadKey, to: &writer) {
          if case .payload(let pointer) = $0 { pointer } else { nil }
        }
      }),
    .custom(
      headerKey, \.self, .named(.match(.text([]))), "The first values of header fields by name.",
      parse: { parser, node, condition in
        guard let entries = parser.parseEntries(node) else { return false }
        return entries.reduce(true) { isValid, entry in
          let value = node.member(entry)
          guard let name = parser.parseHeaderName(entry.key, at: entry.position, path: value.path) else {
            return false
          }
          return parser.parseTest(value, of: .header(name: name), into: &condition) && isValid
        }
      },
      write: { condition, writer in
        condition.writeTests(in: headerKey, to: &writer) { if case .header(let name) = $0 { name } else { nil } }
      }),
    .test(.size, "The size of the payload in bytes."),
    .custom(
      providerTokenKey, \.self, .map(tokenSyntax.description), "The provider token.",
      parse: { parser, node, condition in
        tokenSyntax.parseKeys(node, parser)?.parse(into: &condition) ?? false
      },
      write: { condition, writer in
        condition.writeTests(in: providerTokenKey, to: &writer) { subject in
          subject.isOfProviderToken ? subject.key : nil
        }
      }),
    .test(.client, "The client's address without its port, as a text."),
    .test(.address, "The client's IP address: an address, a CIDR block such as `10.0.0.0/8`, or a pattern with `*`."),
    .test(.listener, "The index of the APNs listener, from 0."),
    .test(.environment, "The environment of that listener."),
    .test(
      .kind,
      "What the request asks for: a push, a broadcast to a channel, or channel management. A rule that does not name it "
        + "applies to pushes only."),
    .test(.age, "The time since the connection was accepted; only at `connection`."),
    .test(.idle, "The time since the client last sent anything; only at `connection`."),
    .test(.serverName, "The host name that the client requested in the TLS handshake; not at `accept`."),
    .test(.certificate, "The `UID` of the client certificate; not at `accept` and `tls`."),
    .test(.attempt, "The number of the push's attempt, from 1."),
    .test(.status, "The status of the response; only at `response`."),
    .test(.reason, "The reason of the response; only at `response`."),
    .custom(
      queryKey, \.query, .text,
      "An inbox query such as `topic:com.acme.* !type:background`, with fields of the request only.",
      parse: { parser, node, condition in
        guard let text = parser.parseText(node), let tests = parser.parseQuery(text, node) else { return false }
        condition.query = text
        condition.tests += tests
        return true
      },
      write: { condition, writer in
        if let text = condition.query { writer.member(queryKey, text) }
      }),
    .custom(
      notKey, \.exceptions, .either(.condition, .list(.condition)),
      "Excluded traffic: one condition, or several of which none may hold.",
      parse: { parser, node, condition in
        guard let elements = parser.parseListOrValue(node) else { return false }
        return elements.reduce(true) { isValid, element in
          guard let exception = syntax.parse(element, parser) else { return false }
          guard exception != Condition() else {
            parser.fail(element, "an empty not excludes everything", hint: "omit it, or add a condition")
            return false
          }
          condition.exceptions.append(exception)
          return isValid
        }
      },
      write: { condition, writer in
        guard !condition.exceptions.isEmpty else { return }
        writer.arrayMember(notKey) { writer in
          for exception in condition.exceptions { exception.write(to: &writer) }
        }
      }))

  private static let tokenSyntax: MapSyntax<Condition> = MapSyntax(
    "provider_token", Condition(),
    .test(.tokenAge, "The time since the token was issued (`iat`)."),
    .test(.teamID, "The team id (`iss`)."),
    .test(.keyID, "The key id (`kid`)."))

  /// Writes the condition as an object with the keys of a profile file.
  package func write(to writer: inout JSONWriter) {
    writer.object { Self.syntax.writeMembers(of: self, to: &$0) }
  }

  /// Writes the tests that belong into a nested map, under the names that `name` returns.
  private func writeTests(in key: String, to writer: inout JSONWriter, name: (Subject) -> String?) {
    let named = tests.filter { !$0.isFromQuery }.compactMap { test in name(test.subject).map { (name: $0, test: test) }
    }
    guard !named.isEmpty else { return }
    writer.objectMember(key) { writer in
      for entry in named {
        writer.name(entry.name)
        entry.test.write(to: &writer)
      }
    }
  }
}

extension Condition.Subject {
  /// The key in a profile file; empty for subjects that only queries have.
  fileprivate var key: String {
    switch self {
    case .deviceToken: "device_token"
    case .topic: "topic"
    case .pushType: "push_type"
    case .priority: "priority"
    case .collapseID: "collapse_id"
    case .apnsID: "apns_id"
    case .size: "size"
    case .client: "client"
    case .address: "address"
    case .listener: "listener"
    case .environment: "environment"
    case .kind: "kind"
    case .age: "age"
    case .idle: "idle"
    case .serverName: "sni"
    case .certificate: "certificate"
    case .attempt: "attempt"
    case .status: "status"
    case .reason: "reason"
    case .tokenAge: "age"
    case .teamID: "team_id"
    case .keyID: "key_id"
    case .payload: Condition.payloadKey
    case .header: Condition.headerKey
    case .connection, .text: ""
    }
  }

  fileprivate var isOfProviderToken: Bool { self == .tokenAge || self == .teamID || self == .keyID }

  /// The subject in the terms of a profile file, such as `topic`, `jwt.age` or `payload /aps/alert`.
  var name: String {
    switch self {
    case .payload(let argument), .header(let argument): "\(key) \(argument)"
    default: isOfProviderToken ? "\(Condition.providerTokenKey).\(key)" : key
    }
  }
}

extension Field<Condition> {
  /// A test of one subject.
  fileprivate static func test(_ subject: Condition.Subject, _ summary: String) -> Field {
    .custom(
      subject.key, \.self, .match(subject.matcher), summary,
      parse: { parser, node, condition in parser.parseTest(node, of: subject, into: &condition) },
      write: { condition, writer in
        guard let test = condition.tests.first(where: { $0.subject == subject && !$0.isFromQuery }) else { return }
        writer.name(subject.key)
        test.write(to: &writer)
      })
  }
}

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
      FieldDescription(name: $0.rawValue, form: $0.form, isRequired: false, defaultText: nil, summary: $0.summary)
    })

  private var form: ValueForm {
    switch self {
    case .equals, .above, .below: .scalar
    case .prefix, .glob: .text
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

extension Condition.Test {
  /// Whether the test comes from a query, whose text is written instead.
  fileprivate var isFromQuery: Bool { if case .query = match { true } else { false } }

  /// Writes the required value.
  fileprivate func write(to writer: inout JSONWriter) {
    switch match {
    case .query: writer.null()
    case .equals(let text): write(text, to: &writer)
    case .prefix(let text): writer.object { $0.member(MatchKey.prefix.rawValue, text) }
    case .glob(let pattern): writer.object { $0.member(MatchKey.glob.rawValue, pattern.text) }
    case .oneOf(let texts):
      writer.object { writer in
        writer.arrayMember(MatchKey.oneOf.rawValue) { writer in
          for text in texts.sorted() { write(text, to: &writer) }
        }
      }
    case .within(let blocks):
      if blocks.count == 1, let block = blocks.first {
        writer.string(block.text)
      } else {
        writer.object { writer in
          writer.arrayMember(MatchKey.oneOf.rawValue) { writer in
            for block in blocks { writer.string(block.text) }
          }
        }
      }
    case .present(let isPresent): writer.object { $0.member(MatchKey.present.rawValue, isPresent) }
    case .between(let above, let below):
      writer.object { writer in
        if let above { write(above, as: .above, to: &writer) }
        if let below { write(below, as: .below, to: &writer) }
      }
    }
  }

  private func write(_ text: String, to writer: inout JSONWriter) {
    if subject.integerRange != nil, let number = Int(text) { writer.integer(number) } else { writer.string(text) }
  }

  private func write(_ bound: Double, as key: MatchKey, to writer: inout JSONWriter) {
    if subject.isDuration, bound.magnitude < 1e12 {
      writer.member(key.rawValue, DurationFormat.text(.milliseconds(Int64(bound * 1000))))
    } else {
      writer.name(key.rawValue)
      writer.shortNumber(bound)
    }
  }
}

extension ProfileParser {
  /// Parses a requirement on a subject and adds it to a condition. Returns false after recording an error.
  fileprivate func parseTest(
    _ node: ProfileNode, of subject: Condition.Subject, into condition: inout Condition
  ) -> Bool {
    if let injectionPoint, !subject.isKnown(at: injectionPoint) {
      fail(
        at: node.keyPosition, node.path, "not available at \(injectionPoint.rawValue)",
        hint: subject.injectionPointHint)
      return false
    }
    guard let match = parseMatch(node, of: subject) else { return false }
    condition.tests.append(Condition.Test(subject, match))
    return true
  }

  /// Parses `q` into tests.
  fileprivate func parseQuery(_ text: String, _ node: ProfileNode) -> [Condition.Test]? {
    do throws(FilterError) {
      let tests = try Condition.tests(query: text)
      guard !tests.isEmpty else {
        fail(node, "the query is empty", hint: "omit it, or write FIELD:VALUE as in topic:com.acme.*")
        return nil
      }
      if let injectionPoint, let test = tests.first(where: { !$0.subject.isKnown(at: injectionPoint) }) {
        fail(
          node, "\(test.name) is not available at \(injectionPoint.rawValue)",
          hint: test.subject.injectionPointHint)
        return nil
      }
      return tests
    } catch {
      fail(node, error.message, hint: error.hint)
      return nil
    }
  }

  fileprivate func parsePointer(_ entry: YAMLNode.Entry, in node: ProfileNode) -> String? {
    if JSONPointer(entry.key) != nil { return entry.key }
    let guess = "/" + entry.key.replacing(".", with: "/")
    fail(
      at: entry.position, node.member(entry).path.shortened, "not a JSON pointer",
      hint: entry.key.contains("~") || entry.key.hasPrefix("/")
        ? "~ is written ~0 and / in a name ~1" : "did you mean \"\(guess.shortened)\"?")
    return nil
  }

  /// Parses the name of a header field and converts it to lower case.
  func parseHeaderName(_ text: String, at position: TextPosition, path: String) -> String? {
    let name = text.lowercased()
    guard (1...256).contains(name.utf8.count),
      name.utf8.allSatisfy({ $0.isLetterOrDigit || "!#$%&'*+-.^_`|~".utf8.contains($0) })
    else {
      fail(at: position, path.shortened, "\"\(text.shortened)\" is not a valid name of a header field")
      return nil
    }
    return name
  }

  // MARK: - Matches

  private func parseMatch(_ node: ProfileNode, of subject: Condition.Subject) -> Condition.Match? {
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
    var values: [(key: MatchKey, value: ProfileNode)] = []
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
  private func parseElements<Element>(_ node: ProfileNode, _ parse: (ProfileNode) -> Element?) -> [Element]? {
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
  private func parseAddress(_ node: ProfileNode) -> Condition.Match? {
    guard let text = parseText(node) else { return nil }
    if text.contains("*") { return .glob(TextPattern(text, foldsCase: true)) }
    return parseBlock(text, node).map { .within([$0]) }
  }

  private func parseBlock(_ text: String, _ node: ProfileNode) -> AddressBlock? {
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
    _ bounds: [(key: MatchKey, value: ProfileNode)], _ node: ProfileNode, of subject: Condition.Subject
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
  private func parseSize(_ node: ProfileNode) -> Int? {
    guard let scalar = parseScalar(node, as: .integer) else { return nil }
    if let bytes = SizeFormat.bytes(scalar.text), bytes <= 1 << 40 { return bytes }
    fail(node, scalar, "\(scalar.text.shortened) is not a number of bytes", hint: "sizes are written 4096 or 4K")
    return nil
  }

  /// Parses a value to compare with, in the form in which the traffic has it.
  private func parseValue(_ node: ProfileNode, of subject: Condition.Subject) -> String? {
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
  private func reportUnmatchable(_ node: ProfileNode, _ value: String, _ hint: String) {
    if stage == .afterValidation, injectionPoint == .request {
      fail(node, "\"\(value.shortened)\" can never match: APNs rejects it before this rule is evaluated", hint: hint)
    } else {
      warn(node, "not a value that APNs accepts: \"\(value.shortened)\"", hint: hint)
    }
  }

  /// Parses a JSON string, number or boolean and returns its text.
  private func parseJSONValue(_ node: ProfileNode) -> String? {
    guard let scalar = parseScalar(node, as: .any) else { return nil }
    if scalar.isString || scalar.text == "true" || scalar.text == "false" { return scalar.text }
    if WrittenNumber.value(scalar.text) != nil { return scalar.text }
    return text(of: scalar, at: node)
  }
}
