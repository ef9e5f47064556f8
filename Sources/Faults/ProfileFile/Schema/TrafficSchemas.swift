internal import APNSMockHTTP2Session
internal import APNSMockNotation
internal import APNSMockTLSEngine

extension Schema<String> {
  /// The name of a header field, converted to lower case.
  static let headerName = Schema(
    form: .text(),
    parse: { parser, node in
      parser.parseText(node).flatMap { parser.parseHeaderName($0, at: node.position, path: node.path) }
    }, write: { $1.string($0) })

  /// A text, or a map or list that is converted to JSON.
  ///
  /// - Parameter limit: The maximum length in bytes.
  static func textOrJSON(limit: Int) -> Schema {
    Schema(form: .either(.text(), .json), parse: { $0.parseTextOrJSON($1, limit: limit) }, write: { $1.string($0) })
  }
}

extension Schema where Value: FixedWidthInteger & Sendable {
  /// A number that has a name in a protocol: either of them.
  fileprivate static func code(
    names: [String], code: @escaping @Sendable (String) -> Value?, name: @escaping @Sendable (Value) -> String?
  ) -> Schema {
    let number = integer(0...Value.max)
    return Schema(
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

extension Schema<UInt32> {
  /// An HTTP/2 error code.
  static let errorCode = code(
    names: HTTP2ErrorCode.names, code: { HTTP2ErrorCode(name: $0)?.rawValue },
    name: { HTTP2ErrorCode(rawValue: $0)?.name })
}

extension Schema<UInt8> {
  /// A TLS alert.
  static let alert = code(names: TLSAlert.names, code: TLSAlert.code(named:), name: TLSAlert.name(of:))
}
