internal import Notation

/// The knobs of a profile with the values they have, while its files are read.
final class Knobs {
  /// One knob.
  struct Knob {
    var parameter: Profile.Parameter
    /// Whether there is a problem with it already, so that its uses need not be judged.
    var isBroken: Bool
    /// Where it is defined.
    let file: String
    let position: FilePosition
    let path: String
    var isUsed = false
  }

  private(set) var all: [String: Knob] = [:]
  /// In the order of the files.
  private(set) var order: [String] = []

  /// Why there is none, for rules that come without a profile; nil if there can be.
  let absence: String?

  init(absence: String? = nil) { self.absence = absence }

  /// Adds one, unless a profile that extends this one has it.
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

  /// The knob a value asks for, `limit` for `${limit}`; nil if it is no such value.
  static func name(in text: String) -> String? {
    guard text.hasPrefix("${"), text.hasSuffix("}") else { return nil }
    let name = text.dropFirst(2).dropLast()
    return name.contains("${") || name.contains("}") ? nil : String(name)
  }

  /// Whether a text can be a knob's name.
  static func isName(_ name: String) -> Bool {
    (1...64).contains(name.utf8.count)
      && name.utf8.allSatisfy { asciiLowercased($0) == $0 && ($0.isLetterOrDigit || $0 == UInt8(ascii: "_")) }
  }
}

extension UInt8 {
  /// Whether it is an ASCII letter or digit.
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
  /// In seconds.
  var inSeconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}

/// Numbers as JSON writes them.
enum WrittenNumber {
  /// A decimal number: nil for everything else that Swift, C or YAML would take, such as `nan`, `0x1p3`, `0410`, `.5`.
  static func value(_ text: String) -> Double? {
    guard let first = text.utf8.first, first == UInt8(ascii: "-") || (UInt8(ascii: "0")...UInt8(ascii: "9")) ~= first,
      let value = Double(text), value.isFinite
    else { return nil }
    var text = text
    return text.withUTF8 { JSONText.problem(in: UnsafeRawBufferPointer($0)) } == nil ? value : nil
  }
}
