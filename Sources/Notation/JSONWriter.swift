/// Writes JSON text, member by member.
///
/// A writer of our own, and not an encoder, because of two promises that encoders do not make: the members of a record
/// stand in the order of its documentation, and the payload of a push stands in it byte for byte as it came.
/// The caller balances nothing: objects and arrays are closures, commas come by themselves.
public struct JSONWriter: Sendable {
  /// What was written so far, in UTF-8.
  public private(set) var bytes: [UInt8] = []
  private var needsComma = false

  /// Begins with nothing, with room for `capacity` bytes.
  public init(capacity: Int = 1024) { bytes.reserveCapacity(capacity) }

  /// Writes an object as the next value; `members` writes what is in it.
  public mutating func object(_ members: (inout JSONWriter) -> Void) {
    enclosed(by: UInt8(ascii: "{"), UInt8(ascii: "}"), members)
  }

  /// Writes an array as the next value; `elements` writes what is in it.
  public mutating func array(_ elements: (inout JSONWriter) -> Void) {
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

  /// Writes the name of the next member of an object; its value has to follow.
  public mutating func name(_ name: String) {
    string(name)
    bytes.append(UInt8(ascii: ":"))
    needsComma = false
  }

  /// Writes a string as the next value.
  public mutating func string(_ text: some StringProtocol) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    var text = String(text)
    text.withUTF8 { escape($0) }
    bytes.append(UInt8(ascii: "\""))
  }

  /// Writes bytes that should be UTF-8 as a string; what is not UTF-8 in them shows as U+FFFD.
  public mutating func string(decoding text: UnsafeRawBufferPointer) {
    string(String(decoding: text, as: UTF8.self))
  }

  /// Writes a whole number as the next value.
  public mutating func integer(_ value: some BinaryInteger) {
    separate()
    bytes.append(contentsOf: String(value).utf8)
  }

  /// Writes a number as the next value. It has to be finite.
  public mutating func number(_ value: Double) {
    separate()
    bytes.append(contentsOf: "\(value)".utf8)
  }

  /// Writes `true` or `false` as the next value.
  public mutating func bool(_ value: Bool) {
    separate()
    bytes.append(contentsOf: (value ? "true" : "false").utf8)
  }

  /// Writes `null` as the next value.
  public mutating func null() {
    separate()
    bytes.append(contentsOf: "null".utf8)
  }

  /// Writes text that is JSON already as the next value. Line breaks, which can only stand between its tokens, become
  /// spaces, so that a whole document can be one line.
  public mutating func verbatim(_ json: UnsafeRawBufferPointer) {
    separate()
    let start = bytes.count
    bytes.append(contentsOf: json)
    for index in start..<bytes.count where bytes[index] == UInt8(ascii: "\n") || bytes[index] == UInt8(ascii: "\r") {
      bytes[index] = UInt8(ascii: " ")
    }
  }

  // MARK: - Members

  /// Writes a member whose value is a string, or null.
  public mutating func member(_ name: String, _ value: String?) {
    self.name(name)
    if let value { string(value) } else { null() }
  }

  /// Writes a member whose value is a whole number, or null.
  public mutating func member(_ name: String, _ value: (some BinaryInteger)?) {
    self.name(name)
    if let value { integer(value) } else { null() }
  }

  /// Writes a member whose value is a number, or null; what is not finite is null too, for JSON has no word for it.
  public mutating func member(_ name: String, _ value: Double?) {
    self.name(name)
    if let value, value.isFinite { number(value) } else { null() }
  }

  /// Writes a member whose value is true or false.
  public mutating func member(_ name: String, _ value: Bool) {
    self.name(name)
    bool(value)
  }

  /// Writes a member whose value is an array of strings.
  public mutating func member(_ name: String, _ values: [String]) {
    self.name(name)
    array { writer in
      for value in values { writer.string(value) }
    }
  }

  /// Writes a member whose value is null.
  public mutating func nullMember(_ name: String) {
    self.name(name)
    null()
  }

  /// Writes a member whose value is an object.
  public mutating func objectMember(_ name: String, _ members: (inout JSONWriter) -> Void) {
    self.name(name)
    object(members)
  }

  /// Writes a member whose value is an array.
  public mutating func arrayMember(_ name: String, _ elements: (inout JSONWriter) -> Void) {
    self.name(name)
    array(elements)
  }

  // MARK: - Characters

  private mutating func separate() {
    if needsComma { bytes.append(UInt8(ascii: ",")) }
    needsComma = true
  }

  /// Appends text with the escapes that it needs in a string.
  private mutating func escape(_ text: UnsafeBufferPointer<UInt8>) {
    // What needs no escape is copied in runs.
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
