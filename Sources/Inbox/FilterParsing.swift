/// Why a filter cannot be read.
public struct FilterError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The name of the field.
  public let field: String
  /// The value it was to be compared with; nil if the field does not exist.
  public let value: String?
  /// What is wrong, with field and value.
  public let message: String
  /// How to repair it.
  public let hint: String

  /// An error about a value.
  public init(field: String, value: String, message: String, hint: String) {
    self.field = field
    self.value = value
    self.message = message
    self.hint = hint
  }

  /// An error about a field that does not exist; the hint has a guess and the fields there are.
  ///
  /// - Parameter further: names that are allowed at this place besides the fields of a filter.
  public init(unknownField field: String, further: [String] = []) {
    self.field = field
    value = nil
    let names = FilterField.names + further
    message = "there is no field \"\(field)\" to filter by"
    let guess = Spelling.nearest(to: field, among: names).map { "did you mean \($0)? " } ?? ""
    hint = "\(guess)The fields are \(names.joined(separator: ", "))."
  }

  public var description: String { "\(message). \(hint)" }
}

extension Filter.Test {
  /// The test that `value` asks for on `field`.
  init(_ field: FilterField, value: String) throws(FilterError) {
    func failure(_ hint: String) -> FilterError {
      FilterError(
        field: field.rawValue, value: value, message: "\(field.rawValue) cannot be \"\(value)\"", hint: hint)
    }
    if value.isEmpty {
      throw failure("Give it a value, or leave it out; !\(field.rawValue)=* finds the records without one.")
    }
    let hasStar = value.contains("*")
    switch field.kind {
    case .text(let foldsCase):
      self = .text(TextPattern(value, foldsCase: foldsCase))
    case .word(let words):
      let pattern = TextPattern(value, foldsCase: false)
      guard words.contains(where: pattern.matches) else {
        let guess = Spelling.nearest(to: value, among: words).map { "Did you mean \($0)? " } ?? ""
        throw failure("\(guess)It is one of \(words.joined(separator: ", ")).")
      }
      self = .text(pattern)
    case .number:
      if hasStar, value.utf8.allSatisfy({ $0 == UInt8(ascii: "*") || (0x30...0x39).contains($0) }) {
        self = .text(TextPattern(value, foldsCase: false))
      } else if let number = Int64(value), number >= 0 {
        self = .number(number)
      } else {
        throw failure("It is a whole number such as 200, or a pattern such as 4*.")
      }
    case .flag:
      guard value == "true" || value == "false" else { throw failure("It is true or false.") }
      self = .flag(value == "true")
    case .time:
      // A plus sign in a query string means a space; a zone such as +02:00 comes here that way.
      guard let time = WrittenTime.milliseconds(value) ?? WrittenTime.milliseconds(value.replacing(" ", with: "+"))
      else { throw failure("It is a time such as 2026-01-31T12:00:00.000Z (RFC 3339).") }
      self = .number(time)
    case .size:
      guard let size = WrittenSize.bytes(value) else {
        throw failure("It is a number of bytes such as 4096, 3.5KiB or 1MiB.")
      }
      self = .number(Int64(size))
    }
  }
}

/// Numbers of bytes as people write them.
public enum WrittenSize {
  /// The bytes that `text` says: a number, decimals allowed, and a unit `B K KiB M MiB G GiB` (each 1024 times the one
  /// before) or none. Nil if it is none of that, or 8 EiB or more.
  public static func bytes(_ text: some StringProtocol) -> Int? {
    let digits = text.prefix { ("0"..."9").contains($0) || $0 == "." }
    let unit = text.dropFirst(digits.count).drop { $0 == " " }
    let factor: Double
    switch unit.lowercased() {
    case "", "b": factor = 1
    case "k", "kib": factor = 1024
    case "m", "mib": factor = 1_048_576
    case "g", "gib": factor = 1_073_741_824
    default: return nil
    }
    guard let value = Double(digits) else { return nil }
    return Int(exactly: (value * factor).rounded(.down))
  }
}
