import MockAPNS
import Notation

/// Parsers of values that only the command line has.
extension Value {
  static func endpoint(_ text: String) throws(BadValue) -> Endpoint {
    guard let endpoint = Endpoint(text) else {
      throw BadValue(value: text, allowed: "HOST:PORT such as 127.0.0.1:2197, [::1]:2197 or localhost:0")
    }
    return endpoint
  }

  static func seed(_ text: String) throws(BadValue) -> UInt64 {
    guard let seed = UInt64(text) else {
      throw BadValue(value: text, allowed: "a whole number from 0 to \(UInt64.max)")
    }
    return seed
  }

  /// Parses a switch, including 0 and 1, which are common in environment variables.
  static func onOrOff(_ text: String) throws(BadValue) -> Bool {
    switch text {
    case "0": return false
    case "1": return true
    default:
      guard let isOn = try? flag(text) else { throw BadValue(value: text, allowed: "0 or 1, off or on") }
      return isOn
    }
  }
}
