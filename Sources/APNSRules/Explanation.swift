internal import Foundation
internal import HTTPMessage

/// Values and times as an explanation shows them: hidden characters visible, long values cut, no provider token ever.
package enum Explanation {
  /// The most characters of a value that are shown.
  static let valueLimit = 80

  /// A value off the wire in quotation marks.
  static func quoted(_ bytes: UnsafeRawBufferPointer) -> String {
    // A value that has a JWT in it is not shown at all: a signature must not get into a record by a wrong header.
    if bytes.looksLikeProviderToken { return "(a JWT, not shown)" }
    var shown = "\""
    for scalar in String(decoding: bytes.prefix(valueLimit), as: UTF8.self).unicodeScalars {
      shown += isHidden(scalar) || scalar == "\"" ? escaped(scalar) : String(scalar)
    }
    return bytes.count > valueLimit ? shown + "…\" (\(bytes.count) bytes)" : shown + "\""
  }

  /// A value of a header in quotation marks, or that there is none.
  static func quoted(_ range: ByteRange?, _ packed: UnsafeRawBufferPointer) -> String {
    guard let range else { return "missing" }
    return quoted(packed.part(range.indices.clamped(to: packed.indices)))
  }

  /// The topic of a push in quotation marks: of its header, or the one that its certificate gives it.
  static func topic(
    _ header: ByteRange?, _ certificate: ProviderCertificate?, _ packed: UnsafeRawBufferPointer
  ) -> String {
    header.map { quoted($0, packed) } ?? quoted(certificate?.defaultTopic ?? "")
  }

  /// A text in quotation marks.
  package static func quoted(_ text: String) -> String {
    var text = text
    return text.withUTF8 { quoted(UnsafeRawBufferPointer($0)) }
  }

  /// A few names in a list, for "one of these".
  static func list(_ names: some Collection<String>) -> String {
    if names.isEmpty { return "none" }
    let shown = names.sorted().prefix(5).joined(separator: ", ")
    return names.count > 5 ? shown + ", … (\(names.count))" : shown
  }

  /// A length of time as people say it.
  static func time(_ milliseconds: Int64) -> String {
    let seconds = milliseconds.magnitude / 1000
    switch seconds {
    case 0: return "\(milliseconds.magnitude) ms"
    case ..<120: return "\(seconds) s"
    case ..<7200: return seconds % 60 == 0 ? "\(seconds / 60) min" : "\(seconds / 60) min \(seconds % 60) s"
    case ..<172_800: return "\(seconds / 3600) h \(seconds % 3600 / 60) min"
    default: return "\(seconds / 86_400) days"
    }
  }

  /// A moment in UTC.
  static func moment(_ milliseconds: Int64) -> String {
    // Outside the years 1 to 9999 a date has no agreed form.
    guard (-62_135_596_800_000..<253_402_300_800_000).contains(milliseconds) else { return "\(milliseconds) ms" }
    return Date(timeIntervalSince1970: Double(milliseconds) / 1000).ISO8601Format()
  }

  private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: true
    case .spaceSeparator: scalar != " "
    default: scalar == "\u{FFFD}"
    }
  }

  private static func escaped(_ scalar: Unicode.Scalar) -> String {
    switch scalar {
    case "\"": "\\\""
    case "\n": "\\n"
    case "\r": "\\r"
    case "\t": "\\t"
    default: "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
    }
  }
}

extension UnsafeRawBufferPointer {
  /// Whether a JWT stands somewhere in it: every one begins with `eyJ`, the base64 of `{"`, has at least the 20
  /// characters of `{"alg":"ES256"}` before its first dot, and a second dot.
  fileprivate var looksLikeProviderToken: Bool {
    guard count > 20 else { return false }
    for start in 0..<count - 20 where self[start] == 0x65 && self[start + 1] == 0x79 && self[start + 2] == 0x4a {
      let dots = self[start...].indices.lazy.filter { self[$0] == 0x2e }.prefix(2)
      if let first = dots.first, first >= start + 20, dots.count == 2 { return true }
    }
    return false
  }
}
