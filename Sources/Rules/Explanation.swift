internal import Foundation
internal import APNSMockHTTPMessage
internal import APNSMockNotation

/// Formats values and times for explanations: hidden characters are escaped, long values truncated, provider tokens
/// never shown.
package enum Explanation {
  /// The maximum number of bytes of a value that are shown.
  static let valueLimit = 80

  /// Formats received bytes in quotation marks.
  static func quoted(_ bytes: UnsafeRawBufferPointer) -> String {
    // A value that contains a JWT is not shown at all: a signature in a wrong header must not get into a record.
    if !TokenRedaction.signatures(in: bytes).isEmpty { return "(a JWT, not shown)" }
    var shown = "\""
    for scalar in String(decoding: bytes.prefix(valueLimit), as: UTF8.self).unicodeScalars {
      shown += isHidden(scalar) || scalar == "\"" ? escaped(scalar) : String(scalar)
    }
    return bytes.count > valueLimit ? shown + "…\" (\(bytes.count) bytes)" : shown + "\""
  }

  /// Formats a header value in quotation marks; `missing` if there is none.
  static func quoted(_ range: ByteRange?, _ packed: UnsafeRawBufferPointer) -> String {
    guard let range else { return "missing" }
    return quoted(packed.part(range.indices.clamped(to: packed.indices)))
  }

  /// Formats a push's topic in quotation marks: from its header, or else from the client certificate.
  static func topic(
    _ header: ByteRange?, _ certificate: ProviderCertificate?, _ packed: UnsafeRawBufferPointer
  ) -> String {
    header.map { quoted($0, packed) } ?? quoted(certificate?.defaultTopic ?? "")
  }

  /// Formats a text in quotation marks.
  package static func quoted(_ text: String) -> String {
    return text.withBytes { quoted($0) }
  }

  /// Formats a list of up to five names.
  static func list(_ names: some Collection<String>) -> String {
    names.isEmpty ? "none" : names.sorted().listed(5)
  }

  /// Formats a duration with its unit.
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

  /// Formats a time in UTC.
  static func timestamp(_ milliseconds: Int64) -> String {
    // ISO 8601 has no agreed form for dates outside of the years 1 to 9999.
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
