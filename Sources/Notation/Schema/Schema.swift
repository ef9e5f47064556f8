/// The schema of a value in a file or a request: one declaration parses, writes and describes it.
package struct Schema<Value>: Sendable {
  /// A description for the JSON Schema and the reference page.
  package let form: SchemaForm
  /// Parses a value; returns nil after recording an error.
  package let parse: @Sendable (SchemaParser, SchemaNode) -> Value?
  /// Writes a value so that `parse` reads it back.
  package let write: @Sendable (Value, inout JSONWriter) -> Void

  /// Creates a schema.
  package init(
    form: SchemaForm, parse: @escaping @Sendable (SchemaParser, SchemaNode) -> Value?,
    write: @escaping @Sendable (Value, inout JSONWriter) -> Void
  ) {
    self.form = form
    self.parse = parse
    self.write = write
  }

  /// The schema of an optional value that is only written if it is present.
  package var optional: Schema<Value?> {
    Schema<Value?>(
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

// MARK: - Scalars

extension Schema<String> {
  package static let text = Schema(form: .text(), parse: { $0.parseText($1) }, write: { $1.string($0) })

  /// A text that must meet a condition. Unquoted scalars are texts, whatever their type in YAML.
  ///
  /// - Parameters:
  ///   - pattern: The regular expression in the JSON Schema.
  ///   - problem: Returns what is wrong with a text and how to correct it; nil for a valid text.
  package static func text(
    pattern: String, _ problem: @escaping @Sendable (String) -> (message: String, hint: String)?
  ) -> Schema {
    Schema(
      form: .text(pattern: pattern),
      parse: { parser, node in
        guard let scalar = parser.parseScalar(node, as: .anyText) else { return nil }
        guard let (message, hint) = problem(scalar.text) else { return scalar.text }
        parser.fail(node, scalar, message, hint: hint)
        return nil
      }, write: { $1.string($0) })
  }
}

extension Schema<String?> {
  /// A text, or null.
  package static let nullableText = Schema(
    form: .text(), parse: { parser, node in node.isEmpty ? .some(nil) : parser.parseText(node).map(Optional.some) },
    write: { text, writer in if let text { writer.string(text) } else { writer.null() } })
}

extension Schema<Int64> {
  /// A point in time, in milliseconds since 1970.
  package static let time = Schema(
    form: .time,
    parse: { parser, node in
      guard let scalar = parser.parseScalar(node, as: .anyText) else { return nil }
      if let time = TimestampFormat.milliseconds(scalar.text) { return time }
      parser.failValue(node, scalar.text, "It must be a time such as 2026-01-31T12:00:00.000Z (RFC 3339).")
      return nil
    }, write: { time, writer in writer.string(TimestampFormat.text(time) ?? "") })
}

extension Schema<[String]> {
  /// A list of strings.
  package static let texts = Schema(
    form: .list(.text()),
    parse: { parser, node in
      if case .list(let elements) = node.content {
        let texts = elements.compactMap { element -> String? in
          guard case .scalar(let scalar) = element.content, scalar.isString else { return nil }
          return scalar.text
        }
        if texts.count == elements.count { return texts }
      }
      parser.failType(node, "a list of strings")
      return nil
    }, write: Schema.list(Schema<String>.text).write)

  /// A string or a list of strings.
  package static let textOrTexts = Schema(
    form: .either(.text(), .list(.text())),
    parse: { parser, node in
      if case .scalar(let scalar) = node.content, scalar.isString { return [scalar.text] }
      return texts.parse(parser, node)
    }, write: texts.write)
}

extension Schema<[String: String?]> {
  /// A map of scalars with arbitrary names, as texts; nil for null.
  package static let scalars = Schema(
    form: .named(.either(.scalar, .null)),
    parse: { parser, node in
      guard case .map = node.content else {
        parser.failType(node, "an object")
        return nil
      }
      var scalars: [String: String?] = [:]
      for member in node.members {
        guard case .scalar(let scalar) = member.content else {
          parser.fail(
            member, "\(member.path) is not a scalar", hint: "It must be a number, a string, true or false.")
          return nil
        }
        scalars.updateValue(member.isEmpty ? nil : scalar.text, forKey: member.key)
      }
      return scalars
    },
    write: { scalars, writer in
      writer.object { writer in
        for (name, text) in scalars.sorted(by: { $0.key < $1.key }) { writer.member(name, text) }
      }
    })
}

extension Schema<Bool> {
  package static let flag = Schema(form: .flag, parse: { $0.parseFlag($1) }, write: { $1.bool($0) })
}

extension Schema<Double> {
  package static func number(_ range: NumberRange) -> Schema {
    Schema(form: .number(range), parse: { $0.parseNumber($1, in: range) }, write: { $1.shortNumber($0) })
  }

  package static let probability = Schema(
    form: .number(.from(0, to: 1)), parse: { $0.parseProbability($1) }, write: { $1.shortNumber($0) })
}

extension Schema<Duration> {
  /// A duration, at least zero.
  package static let duration = Schema(
    form: .duration(isPositive: false), parse: { $0.parseDuration($1) }, write: { $1.string(DurationFormat.text($0)) })
  /// A duration longer than zero.
  package static let positiveDuration = Schema(
    form: .duration(isPositive: true), parse: { $0.parseDuration($1, isPositive: true) }, write: duration.write)
}

extension Schema<Duration?> {
  private static let never = "never"

  /// A duration, or `never`, which is nil.
  package static let durationOrNever = Schema(
    form: .either(.duration(isPositive: false), .word([never])),
    parse: { parser, node in
      if case .scalar(let scalar) = node.content, scalar.text == never { return .some(nil) }
      return parser.parseDuration(node).map { .some($0) }
    }, write: { $1.string($0.map(DurationFormat.text) ?? never) })
}

extension Schema where Value: FixedWidthInteger & Sendable {
  package static func integer(_ range: ClosedRange<Value>) -> Schema {
    let range = Int(clamping: range.lowerBound)...Int(clamping: range.upperBound)
    return Schema(
      form: .integer(range), parse: { $0.parseInteger($1, in: range).flatMap(Value.init(exactly:)) },
      write: { $1.integer($0) })
  }
}

extension Schema<Int> {
  /// A count of at least `minimum`.
  package static func count(from minimum: Int) -> Schema { integer(minimum...Int(Int32.max)) }
}

extension Schema<UInt64> {
  /// A 64-bit number, one bit more than `integer` supports.
  package static let seed = Schema(
    form: .integer(0...Int.max),
    parse: { parser, node in
      guard let scalar = parser.parseScalar(node, as: .integer) else { return nil }
      if !scalar.isString, let seed = UInt64(scalar.text) { return seed }
      parser.fail(node, scalar, "\(scalar.text.shortened) is not a whole number from 0 to 2⁶⁴−1")
      return nil
    }, write: { $1.integer($0) })
}

extension Schema where Value: RawRepresentable<String> & CaseIterable & Equatable & Sendable {
  /// Any value of the enumeration.
  package static var word: Schema { word(Array(Value.allCases)) }

  /// One of some values of the enumeration.
  ///
  /// - Parameter synonyms: Further names of values.
  package static func word(_ allowed: [Value], synonyms: [String: Value] = [:]) -> Schema {
    Schema(
      form: .word(allowed.map(\.rawValue)), parse: { $0.parseWord($1, allowed: allowed, synonyms: synonyms) },
      write: { $1.string($0.rawValue) })
  }
}

// MARK: - Lists and maps

extension Schema {
  /// A list. Invalid elements make it invalid.
  package static func list<Element: Sendable>(_ element: Schema<Element>) -> Schema where Value == [Element] {
    Schema(
      form: .list(element.form),
      parse: { parser, node in
        guard let nodes = parser.parseList(node) else { return nil }
        let elements = nodes.compactMap { element.parse(parser, $0) }
        return elements.count == nodes.count ? elements : nil
      },
      write: { elements, writer in
        writer.array { writer in
          for value in elements { element.write(value, &writer) }
        }
      })
  }

  /// A map with known keys.
  package static func map(_ map: MapSchema<Value>) -> Schema where Value: Sendable {
    .map(map, make: { $0 }, values: { $0 })
  }

  /// A map with known keys, which are properties of another type than `Value`.
  ///
  /// - Parameters:
  ///   - make: Creates the value of the properties.
  ///   - values: Returns the properties of a value; nil for a value that this map cannot express.
  package static func map<Root: Sendable>(
    _ map: MapSchema<Root>, make: @escaping @Sendable (Root) -> Value, values: @escaping @Sendable (Value) -> Root?
  ) -> Schema {
    Schema(
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
  package mutating func shortNumber(_ value: Double) {
    if let whole = Int64(exactly: value) { integer(whole) } else { number(value) }
  }
}
