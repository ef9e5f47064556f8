/// A value that a setting cannot have. Who catches it knows where the value stood.
public struct BadValue: Error, Equatable, Sendable {
  /// What was given.
  public let value: String
  /// What can be given: words that go on after "it takes".
  public let allowed: String

  /// A value, and what it should have been.
  public init(value: String, allowed: String) {
    self.value = value
    self.allowed = allowed
  }
}

/// Reads the values of settings, which are texts wherever they come from. Each takes the text and throws `BadValue` with
/// what would have been allowed.
public enum Value {
  /// A whole number.
  public static func whole(_ text: String, in range: ClosedRange<Int>) throws(BadValue) -> Int {
    guard let number = Int(text), range.contains(number) else {
      let limits =
        range.upperBound == .max ? "from \(range.lowerBound)" : "from \(range.lowerBound) to \(range.upperBound)"
      throw BadValue(value: text, allowed: "a whole number \(limits)")
    }
    return number
  }

  /// A number of bytes, above zero.
  public static func size(_ text: String) throws(BadValue) -> Int {
    guard let size = WrittenSize.bytes(text), size > 0 else {
      throw BadValue(value: text, allowed: "a size such as 512KiB, 256MiB or 1GiB")
    }
    return size
  }

  /// A duration, zero or longer unless `isPositive`.
  public static func duration(_ text: String, isPositive: Bool = false) throws(BadValue) -> Duration {
    guard let duration = WrittenDuration.duration(text), isPositive ? duration > .zero : duration >= .zero else {
      let allowed = "a duration such as 500ms, 5s, 2m or 1h"
      throw BadValue(value: text, allowed: isPositive ? allowed + ", longer than zero" : allowed)
    }
    return duration
  }

  /// One of the values of an enumeration, by its raw value.
  public static func word<Choice: RawRepresentable<String> & CaseIterable>(
    _ text: String, of type: Choice.Type
  ) throws(BadValue) -> Choice {
    guard let choice = Choice(rawValue: text) else {
      throw BadValue(value: text, allowed: type.allCases.map(\.rawValue).spokenChoice)
    }
    return choice
  }

  /// A switch, in every spelling that YAML 1.1 knows: `throttle_on_4xx: off` is a boolean to some writers of YAML and
  /// a word to others.
  public static func flag(_ text: String) throws(BadValue) -> Bool {
    switch text.lowercased() {
    case "on", "true", "yes": return true
    case "off", "false", "no": return false
    default: throw BadValue(value: text, allowed: "on or off")
    }
  }

  /// Whether a value that can be switched off is.
  public static func isOff(_ text: String) -> Bool {
    (try? flag(text)) == false
  }

  /// A text that is not empty.
  public static func notEmpty(_ text: String, allowed: String) throws(BadValue) -> String {
    guard !text.isEmpty else { throw BadValue(value: text, allowed: allowed) }
    return text
  }
}
