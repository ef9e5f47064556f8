/// Writes JSON text, member by member.
///
/// Used instead of an encoder, which would not guarantee two things: the members of a record are in the documented
/// order, and a push's payload is embedded byte for byte as received. Objects and arrays are closures, and
/// commas are added automatically, so the caller does not balance anything.
package struct JSONWriter: Sendable {
  /// The text written so far, in UTF-8.
  package private(set) var bytes: [UInt8] = []
  private var needsComma = false

  /// Creates an empty writer that reserves `capacity` bytes.
  package init(capacity: Int = 1024) { bytes.reserveCapacity(capacity) }

  /// Writes an object as the next value; `members` writes its members.
  package mutating func object(_ members: (inout JSONWriter) -> Void) {
    enclosed(by: UInt8(ascii: "{"), UInt8(ascii: "}"), members)
  }

  /// Writes an array as the next value; `elements` writes its elements.
  package mutating func array(_ elements: (inout JSONWriter) -> Void) {
    enclosed(by: UInt8(ascii: "["), UInt8(ascii: "]"), elements)
  }

  private mutating func enclosed(by open: UInt8, _ close: UInt8, _ content: (inout JSONWriter) -> Void) {
    separate()
    bytes.append(open)
    needsComma = false
    content(&self)
    bytes.append(close)
    needsComma = true
  }

  /// Writes the name of the next member of an object; its value must be written next.
  package mutating func name(_ name: String) {
    string(name)
    bytes.append(UInt8(ascii: ":"))
    needsComma = false
  }

  /// Writes a string as the next value.
  package mutating func string(_ text: some StringProtocol) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    var text = String(text)
    text.withUTF8 { escape($0) }
    bytes.append(UInt8(ascii: "\""))
  }

  /// Writes an integer as the next value.
  package mutating func integer(_ value: some BinaryInteger) {
    separate()
    bytes.append(contentsOf: String(value).utf8)
  }

  /// Writes a number as the next value. The number must be finite.
  package mutating func number(_ value: Double) {
    separate()
    bytes.append(contentsOf: "\(value)".utf8)
  }

  /// Writes `true` or `false` as the next value.
  package mutating func bool(_ value: Bool) {
    separate()
    bytes.append(contentsOf: (value ? "true" : "false").utf8)
  }

  /// Writes `null` as the next value.
  package mutating func null() {
    separate()
    bytes.append(contentsOf: "null".utf8)
  }

  /// Writes valid JSON text as the next value.
  package mutating func verbatim(_ json: [UInt8]) { json.withUnsafeBytes { verbatim($0) } }

  /// Writes valid JSON text as the next value. Replaces line breaks, which can only occur between tokens, by spaces,
  /// so that a whole document can be on one line.
  package mutating func verbatim(_ json: UnsafeRawBufferPointer) {
    separate()
    let start = bytes.count
    bytes.append(contentsOf: json)
    for index in start..<bytes.count where bytes[index] == UInt8(ascii: "\n") || bytes[index] == UInt8(ascii: "\r") {
      bytes[index] = UInt8(ascii: " ")
    }
  }

  // MARK: - Members

  /// Writes a member whose value is a string, or null.
  package mutating func member(_ name: String, _ value: String?) {
    self.name(name)
    if let value { string(value) } else { null() }
  }

  /// Writes a member whose value is an integer, or null.
  package mutating func member(_ name: String, _ value: (some BinaryInteger)?) {
    self.name(name)
    if let value { integer(value) } else { null() }
  }

  /// Writes a member whose value is a number, or null. A number that is not finite is written as null, because JSON
  /// cannot represent it.
  package mutating func member(_ name: String, _ value: Double?) {
    self.name(name)
    if let value, value.isFinite { number(value) } else { null() }
  }

  /// Writes a member whose value is true or false.
  package mutating func member(_ name: String, _ value: Bool) {
    self.name(name)
    bool(value)
  }

  /// Writes a member whose value is an array of strings.
  package mutating func member(_ name: String, _ values: [String]) {
    self.name(name)
    array { writer in
      for value in values { writer.string(value) }
    }
  }

  /// Writes a member whose value is null.
  package mutating func nullMember(_ name: String) {
    self.name(name)
    null()
  }

  /// Writes a member whose value is an object.
  package mutating func objectMember(_ name: String, _ members: (inout JSONWriter) -> Void) {
    self.name(name)
    object(members)
  }

  /// Writes a member whose value is an array.
  package mutating func arrayMember(_ name: String, _ elements: (inout JSONWriter) -> Void) {
    self.name(name)
    array(elements)
  }

  // MARK: - Characters

  private mutating func separate() {
    if needsComma { bytes.append(UInt8(ascii: ",")) }
    needsComma = true
  }

  /// Appends text with the escapes required in a string.
  private mutating func escape(_ text: UnsafeBufferPointer<UInt8>) {
    // Text without escapes is copied in runs.
    var start = 0
    for (index, byte) in text.enumerated() {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        bytes.append(contentsOf: text[start..<index])
        bytes.append(UInt8(ascii: "\\"))
        bytes.append(byte)
        start = index + 1
      case 0..<0x20, 0x7F:
        bytes.append(contentsOf: text[start..<index])
        bytes.append(contentsOf: "\\u00".utf8)
        let digits: StaticString = "0123456789abcdef"
        bytes.append(digits.utf8Start[Int(byte >> 4)])
        bytes.append(digits.utf8Start[Int(byte & 15)])
        start = index + 1
      default: break
      }
    }
    bytes.append(contentsOf: text[start...])
  }
}
