import APNSRules
import Inbox
import MockAPNS

/// Reads the values of settings, which are texts wherever they come from. Each takes the text and throws `BadValue` with
/// what would have been allowed.
enum Value {
  static func endpoint(_ text: String) throws(BadValue) -> Endpoint {
    guard let endpoint = Endpoint(text) else {
      throw BadValue(value: text, allowed: "HOST:PORT such as 127.0.0.1:2197, [::1]:2197 or localhost:0")
    }
    return endpoint
  }

  static func whole(_ text: String, in range: ClosedRange<Int>) throws(BadValue) -> Int {
    guard let number = Int(text), range.contains(number) else {
      let limits =
        range.upperBound == .max ? "from \(range.lowerBound)" : "from \(range.lowerBound) to \(range.upperBound)"
      throw BadValue(value: text, allowed: "a whole number \(limits)")
    }
    return number
  }

  static func seed(_ text: String) throws(BadValue) -> UInt64 {
    guard let seed = UInt64(text) else {
      throw BadValue(value: text, allowed: "a whole number from 0 to \(UInt64.max)")
    }
    return seed
  }

  static func size(_ text: String) throws(BadValue) -> Int {
    guard let size = WrittenSize.bytes(text), size > 0 else {
      throw BadValue(value: text, allowed: "a size such as 512KiB, 256MiB or 1GiB")
    }
    return size
  }

  /// A duration, zero or longer unless `isPositive`.
  static func duration(_ text: String, isPositive: Bool = false) throws(BadValue) -> Duration {
    guard let duration = WrittenDuration.duration(text), isPositive ? duration > .zero : duration >= .zero else {
      let allowed = "a duration such as 500ms, 5s, 2m or 1h"
      throw BadValue(value: text, allowed: isPositive ? allowed + ", longer than zero" : allowed)
    }
    return duration
  }

  /// One of the values of an enumeration, by its raw value.
  static func word<Choice: RawRepresentable<String> & CaseIterable>(
    _ text: String, of type: Choice.Type
  ) throws(BadValue) -> Choice {
    guard let choice = Choice(rawValue: text) else {
      throw BadValue(value: text, allowed: type.allCases.map(\.rawValue).spokenChoice)
    }
    return choice
  }

  /// A switch, in every spelling that YAML 1.1 knows: `throttle_on_4xx: off` is a boolean to some writers of YAML and
  /// a word to others.
  static func flag(_ text: String) throws(BadValue) -> Bool {
    switch text.lowercased() {
    case "on", "true", "yes": return true
    case "off", "false", "no": return false
    default: throw BadValue(value: text, allowed: "on or off")
    }
  }

  /// Whether a value that can be switched off is.
  static func isOff(_ text: String) -> Bool {
    (try? flag(text)) == false
  }

  /// A number of pushes within a time: `5/1s`.
  static func deviceRate(_ text: String) throws(BadValue) -> DeviceRate {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let count = Int(parts[0]), count > 0, let per = WrittenDuration.duration(parts[1]),
      per > .zero
    else { throw BadValue(value: text, allowed: "a number of pushes in a time such as 5/1s, or off") }
    return DeviceRate(count: count, per: per)
  }

  static func notEmpty(_ text: String, allowed: String) throws(BadValue) -> String {
    guard !text.isEmpty else { throw BadValue(value: text, allowed: allowed) }
    return text
  }
}
