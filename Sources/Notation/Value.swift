/// An invalid value of a setting. The code that catches the error knows the setting.
public struct BadValue: Error, Equatable, Sendable {
  /// The invalid value.
  public let value: String
  /// A description of the valid values, to follow "it takes".
  public let allowed: String

  /// Creates an error with the invalid value and a description of the valid values.
  public init(value: String, allowed: String) {
    self.value = value
    self.allowed = allowed
  }
}

/// Parses the values of settings from text. Each function throws `BadValue` with a description of the valid values.
public enum Value {
  /// Parses an integer.
  public static func whole(_ text: String, in range: ClosedRange<Int>) throws(BadValue) -> Int {
    guard let number = Int(text), range.contains(number) else {
      let limits =
        range.upperBound == .max ? "from \(range.lowerBound)" : "from \(range.lowerBound) to \(range.upperBound)"
      throw BadValue(value: text, allowed: "a whole number \(limits)")
    }
    return number
  }

  /// Parses a number of bytes above zero.
  public static func size(_ text: String) throws(BadValue) -> Int {
    guard let size = WrittenSize.bytes(text), size > 0 else {
      throw BadValue(value: text, allowed: "a size such as 512KiB, 256MiB or 1GiB")
    }
    return size
  }

  /// Parses a duration of at least zero, or above zero if `isPositive`.
  public static func duration(_ text: String, isPositive: Bool = false) throws(BadValue) -> Duration {
    guard let duration = WrittenDuration.duration(text), isPositive ? duration > .zero : duration >= .zero else {
      let allowed = "a duration such as 500ms, 5s, 2m or 1h"
      throw BadValue(value: text, allowed: isPositive ? allowed + ", longer than zero" : allowed)
    }
    return duration
  }

  /// Parses the raw value of an enumeration.
  public static func word<Choice: RawRepresentable<String> & CaseIterable>(
    _ text: String, of type: Choice.Type
  ) throws(BadValue) -> Choice {
    guard let choice = Choice(rawValue: text) else {
      throw BadValue(value: text, allowed: type.allCases.map(\.rawValue).spokenChoice)
    }
    return choice
  }

  /// Parses a Boolean in every spelling of YAML 1.1, except `y` and `n`: for `throttle_on_4xx: off` some YAML
  /// emitters write a Boolean and others a string.
  public static func flag(_ text: String) throws(BadValue) -> Bool {
    switch text.lowercased() {
    case "on", "true", "yes": return true
    case "off", "false", "no": return false
    default: throw BadValue(value: text, allowed: "on or off")
    }
  }

  /// Returns whether the text is a Boolean that is false.
  public static func isOff(_ text: String) -> Bool {
    (try? flag(text)) == false
  }

  /// Returns a text that is not empty.
  public static func notEmpty(_ text: String, allowed: String) throws(BadValue) -> String {
    guard !text.isEmpty else { throw BadValue(value: text, allowed: allowed) }
    return text
  }
}
