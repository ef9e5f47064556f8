package import APNSMockFaultModel
package import APNSMockNotation

extension Condition {
  static let payloadKey = "payload"
  static let headerKey = "header"
  static let providerTokenKey = "jwt"
  static let queryKey = "q"
  private static let notKey = "not"

  /// The schema of `when`.
  static let schema: MapSchema<Condition> = MapSchema(
    "condition", Condition(),
    .test(.deviceToken, "The device token, in any case. Quote it: YAML reads some tokens as numbers."),
    .test(.topic, "`apns-topic`; without it, the only topic of the provider certificate."),
    .test(.pushType, "`apns-push-type`."),
    .test(.priority, "`apns-priority`; 10 if the header field is absent."),
    .test(.collapseID, "`apns-collapse-id`."),
    .test(.apnsID, "`apns-id` as the client sent it."),
    .custom(
      payloadKey, \.self, .named(Matcher.json.form),
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
      headerKey, \.self, .named(Matcher.text([]).form), "The first values of header fields by name.",
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
      providerTokenKey, \.self, .map(tokenSchema.description), "The provider token.",
      parse: { parser, node, condition in
        tokenSchema.parseKeys(node, parser)?.parse(into: &condition) ?? false
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
      queryKey, \.query, .text(),
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
          guard let exception = schema.parse(element, parser) else { return false }
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

  private static let tokenSchema: MapSchema<Condition> = MapSchema(
    "provider_token", Condition(),
    .test(.tokenAge, "The time since the token was issued (`iat`)."),
    .test(.teamID, "The team id (`iss`)."),
    .test(.keyID, "The key id (`kid`)."))

  /// Writes the condition as an object with the keys of a profile file.
  package func write(to writer: inout JSONWriter) {
    writer.object { Self.schema.writeMembers(of: self, to: &$0) }
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
      subject.key, \.self, subject.matcher.form, summary,
      parse: { parser, node, condition in parser.parseTest(node, of: subject, into: &condition) },
      write: { condition, writer in
        guard let test = condition.tests.first(where: { $0.subject == subject && !$0.isFromQuery }) else { return }
        writer.name(subject.key)
        test.write(to: &writer)
      })
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

extension SchemaParser {
  /// Parses a requirement on a subject and adds it to a condition. Returns false after recording an error.
  fileprivate func parseTest(
    _ node: SchemaNode, of subject: Condition.Subject, into condition: inout Condition
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
  func parseQuery(_ text: String, _ node: SchemaNode) -> [Condition.Test]? {
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

  fileprivate func parsePointer(_ entry: YAMLNode.Entry, in node: SchemaNode) -> String? {
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
}
