extension YAMLNode {
  /// The value as YAML in block style. Comments and styles of the original text are lost.
  package var yaml: String {
    var text = ""
    write(to: &text, indent: 0)
    return text
  }

  /// Writes the value: a scalar and a line break, or the lines of a list or map.
  private func write(to text: inout String, indent: Int) {
    let margin = String(repeating: " ", count: indent)
    switch content {
    case .scalar(let scalar): text += scalar.yaml + "\n"
    case .list(let elements):
      if elements.isEmpty { text += "[]\n" }
      for (index, element) in elements.enumerated() {
        text += (index > 0 ? margin : "") + "- "
        element.write(to: &text, indent: indent + 2)
      }
    case .map(let entries):
      if entries.isEmpty { text += "{}\n" }
      for (index, entry) in entries.enumerated() {
        text += (index > 0 ? margin : "") + Scalar(text: entry.key, isString: true).yaml + ":"
        if entry.value.isNested {
          text += "\n" + margin + "  "
          entry.value.write(to: &text, indent: indent + 2)
        } else {
          text += " "
          entry.value.write(to: &text, indent: indent)
        }
      }
    }
  }

  /// Whether the value is a list or map with elements.
  private var isNested: Bool {
    switch content {
    case .scalar: false
    case .list(let elements): !elements.isEmpty
    case .map(let entries): !entries.isEmpty
    }
  }
}

extension YAMLNode.Scalar {
  /// The scalar in YAML: a string without quotation marks if no parser can take it for anything else.
  fileprivate var yaml: String {
    guard isString else { return text.isEmpty ? "null" : text }
    let isPlain =
      text.utf8.allSatisfy { byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "._-".utf8.contains(byte)
        }
      } && text.utf8.first.map { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: ".") } == true
      && YAMLScalarKind(text) == .string
    if isPlain { return text }
    // JSON strings are YAML.
    var writer = JSONWriter()
    writer.string(text)
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}
