internal import Notation

/// The parameters of a profile and their values while its files are parsed.
final class Knobs {
  /// A parameter.
  struct Knob {
    var parameter: Profile.Parameter
    /// Whether a problem was already recorded, so that uses of the parameter need no validation.
    var isBroken: Bool
    /// The file that defines the parameter.
    let file: String
    let position: FilePosition
    let path: String
    var isUsed = false
  }

  private(set) var all: [String: Knob] = [:]
  /// The names in the order of the files.
  private(set) var order: [String] = []

  /// The reason why no parameters can be defined, for standalone rules; nil if they can.
  let absence: String?

  init(absence: String? = nil) { self.absence = absence }

  /// Adds a parameter unless a profile that extends this one has defined it.
  func define(_ knob: Knob) {
    let name = knob.parameter.name
    guard all[name] == nil else { return }
    all[name] = knob
    order.append(name)
  }

  func change(_ name: String, _ change: (inout Knob) -> Void) {
    if var knob = all[name] {
      change(&knob)
      all[name] = knob
    }
  }

  /// Returns the parameter that a value refers to, such as `limit` for `${limit}`; nil if the value is not a
  /// reference.
  static func name(in text: String) -> String? {
    guard text.hasPrefix("${"), text.hasSuffix("}") else { return nil }
    let name = text.dropFirst(2).dropLast()
    return name.contains("${") || name.contains("}") ? nil : String(name)
  }

  /// Returns whether a text is a valid name of a parameter.
  static func isName(_ name: String) -> Bool {
    (1...64).contains(name.utf8.count)
      && name.utf8.allSatisfy { asciiLowercased($0) == $0 && ($0.isLetterOrDigit || $0 == UInt8(ascii: "_")) }
  }
}

extension UInt8 {
  /// Whether the byte is an ASCII letter or digit.
  var isLetterOrDigit: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: false
    }
  }
}

extension Duration {
  /// The duration in seconds.
  var inSeconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}

/// Numbers in JSON syntax.
enum WrittenNumber {
  /// Returns the value of a decimal number; nil for other notations that Swift, C or YAML accept, such as `nan`,
  /// `0x1p3`, `0410`, `.5`.
  static func value(_ text: String) -> Double? {
    guard let first = text.utf8.first, first == UInt8(ascii: "-") || (UInt8(ascii: "0")...UInt8(ascii: "9")) ~= first,
      let value = Double(text), value.isFinite
    else { return nil }
    var text = text
    return text.withUTF8 { JSONText.problem(in: UnsafeRawBufferPointer($0)) } == nil ? value : nil
  }
}
