internal import Notation

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
  init(field: String, value: String, hint: String) {
    self.field = field
    self.value = value
    message = "\(field) cannot be \"\(value)\""
    self.hint = hint
  }

  /// An error about a field that does not exist; the hint has a guess and the fields there are.
  ///
  /// - Parameter further: names that are allowed at this place besides the fields of a filter.
  init(unknownField field: String, further: [String]) {
    self.field = field
    value = nil
    let names = FilterField.names + further
    message = "there is no field \"\(field)\" to filter by"
    let guess = Spelling.nearest(to: field, among: names).map { "did you mean \($0)? " } ?? ""
    hint = "\(guess)The fields are \(names.joined(separator: ", "))."
  }

  /// What is wrong and how to repair it.
  public var description: String { "\(message). \(hint)" }
}

extension Filter.Test {
  /// The test that `value` asks for on `field`.
  init(_ field: FilterField, value: String) throws(FilterError) {
    func failure(_ hint: String) -> FilterError {
      FilterError(field: field.rawValue, value: value, hint: hint)
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
