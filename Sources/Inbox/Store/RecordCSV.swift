internal import APNSMockRules
internal import APNSMockFaultModel
internal import APNSMockNotation

/// CSV (RFC 4180) of records, one row each.
extension Record {
  /// The header row.
  static let csvHeader: [UInt8] = csvRow(
    columns: [
      "seq", "received_at", "outcome", "accepted", "status", "reason", "topic", "push_type", "priority", "device_token",
      "apns_id", "collapse_id", "attempt", "connection", "client", "size", "limit", "latency_ms", "rule", "findings",
      "payload",
    ])

  /// Returns the row of the record. The payload is empty if it is not JSON.
  func csvRow(findings: [String]) -> [UInt8] {
    let latency = sentResponse.latencyNanoseconds.map { String(Double($0 / 1000) / 1000) }
    let payload = payloadProblem == nil ? String(decoding: body, as: UTF8.self) : nil
    let columns: [String?] = [
      name.description, TimestampFormat.text(receivedAt), outcome.rawValue, String(accepted),
      sentResponse.status.map { String($0) }, sentReason, topic, pushType, priority.map { String($0) }, deviceToken,
      apnsID,
      collapseID, String(attempt), connection.id, connection.client, String(bodySize), String(facts.payloadLimit),
      latency,
      wireDetails?.injections.first?.rule, findings.joined(separator: " "), payload,
    ]
    return Self.csvRow(columns: columns.map { $0 ?? "" })
  }

  private static func csvRow(columns: [String]) -> [UInt8] {
    var row: [UInt8] = []
    for (index, text) in columns.enumerated() {
      if index > 0 { row.append(UInt8(ascii: ",")) }
      appendCell(text, to: &row)
    }
    row.append(contentsOf: [0x0d, 0x0a])
    return row
  }

  /// Appends a cell. A text that a spreadsheet would evaluate as a formula gets an apostrophe in front, which
  /// spreadsheets do not show: it comes from providers, and a formula can run commands or send data.
  private static func appendCell(_ text: String, to row: inout [UInt8]) {
    let isFormula = mayBeFormula(text)
    let needsQuotes = isFormula || text.utf8.contains { "\",;\r\n\t ".utf8.contains($0) }
    guard needsQuotes else { return row.append(contentsOf: text.utf8) }
    row.append(UInt8(ascii: "\""))
    if isFormula { row.append(UInt8(ascii: "'")) }
    for byte in text.utf8 {
      if byte == UInt8(ascii: "\"") { row.append(byte) }
      row.append(byte)
    }
    row.append(UInt8(ascii: "\""))
  }

  /// Returns whether a spreadsheet may evaluate a text as a formula, or begin a cell or a row in it: what remains after
  /// invisible characters at the beginning, which some programs remove, begins with a sign of `=+-@|` in any of its
  /// forms, or the text begins with a tab or a line break.
  private static func mayBeFormula(_ text: String) -> Bool {
    guard let first = text.unicodeScalars.first else { return false }
    if ["\t", "\r", "\n"].contains(first) { return true }
    let visible = text.unicodeScalars.first { scalar in
      switch scalar.properties.generalCategory {
      case .control, .format, .spaceSeparator, .lineSeparator, .paragraphSeparator: false
      default: true
      }
    }
    return visible.map { formulaSigns.contains($0) } ?? false
  }

  /// The signs that begin a formula, and the characters that programs replace by them (Unicode's compatibility
  /// mappings: full width, small, superscript and subscript forms), with the minus sign and the plus sign of Hebrew.
  private static let formulaSigns = Set(
    "=+-@|\u{FF1D}\u{FF0B}\u{FF0D}\u{FF20}\u{FF5C}\u{FE66}\u{FE62}\u{FE63}\u{FE6B}\u{207C}\u{207A}\u{207B}\u{208C}\u{208A}\u{208B}\u{2212}\u{FB29}"
      .unicodeScalars)
}
