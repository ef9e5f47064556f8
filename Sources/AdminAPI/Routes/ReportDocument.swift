internal import APNSMockEmbeddedFiles
package import APNSMockInbox
package import APNSMockRules
internal import APNSMockNotation

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The report of runs as one HTML file: the web UI over embedded records. It opens from disk and makes no request.
package enum ReportDocument {
  /// The maximum number of embedded records, and the maximum size of the file.
  private static let maxRecords = 20_000, maxBytes = 15_000_000

  /// Returns the document.
  ///
  /// - Parameters:
  ///   - ids: The runs; nil for all, and the pushes of none.
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  package static func html(
    _ report: RunReport, of records: RunRecords, _ ids: Set<String>? = nil, by rulebook: Rulebook
  ) throws(StoreUnavailable) -> [UInt8] {
    var summary = JSONWriter()
    summary.object { report.writeMembers(to: &$0, numbersPushes: true) }
    var html = Array(opening.utf8)
    html.reserveCapacity(maxBytes)
    // Within a script element, an HTML parser looks only for its end.
    for byte in summary.bytes {
      if byte == UInt8(ascii: "<") { html += "\\u003c".utf8 } else { html.append(byte) }
    }
    // Base64 has four characters for three bytes.
    let room = max(0, maxBytes - html.count - 1_000) / 4 * 3
    let (embedded, count) = try Self.embedded(
      records, ids, rulebook, accepted: report.acceptedCount, of: report.pushes, maxBytes: room)
    html.removeLast()
    let checks = Check.allCases.map { "\"\($0.name)\"" }.joined(separator: ",")
    html +=
      ",\"checks\":[\(checks)],\"embedded\":\(count)}</script>\n    <script type=\"application/octet-stream\" id=\"records\">"
      .utf8
    html += Data(embedded).base64EncodedData()
    html += "</script>\n  </body>\n</html>\n".utf8
    return html
  }

  /// The document up to the summary.
  private static let opening = """
    <!doctype html>
    <html lang="en">
    <head>
      <meta charset="utf-8">
      <meta http-equiv="Content-Security-Policy" content="\(policy)">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="referrer" content="no-referrer">
      <meta name="color-scheme" content="light dark">
      <title>apns-mock report</title>
      <style>\(style)</style>
    </head>
    <body class="is-report">
      <header id="bar" class="bar"></header>
      <div id="banner" class="banner" role="status" hidden></div>
      <div class="frame">
        <nav id="groups" class="groups" aria-label="Groups"></nav>
        <main id="main" class="main" tabindex="-1">
          <p class="notice">Reading the report. If this text stays, the file is cut off: write the report again.</p>
          <noscript><p class="notice">This report requires JavaScript.</p></noscript>
        </main>
      </div>
      <div id="toasts" class="toasts" role="status" aria-live="polite"></div>
      <script type="module">\(script)</script>
      \(summaryTag)
    """
  private static let summaryTag = "<script type=\"application/json\" id=\"summary\">"
  private static let style = String(
    decoding: WebUIRoutes.bundle.files[WebUIBundle.styleName]?.bytes ?? [], as: UTF8.self)
  private static let script = WebUIBundle.script(of: "modules/report/main.js", in: WebUIRoutes.files)

  /// The content security policy: nothing but the script and the style of this file.
  static let policy = """
    default-src 'none'; script-src \(WebUIBundle.hash(script)); style-src \(WebUIBundle.hash(style)); img-src data:; \
    base-uri 'none'; form-action 'none'
    """

  /// Returns the member `facts` of a report, with which a later run is compared.
  ///
  /// - Returns: nil if the file is no report, or of an unknown format.
  package static func facts(in html: [UInt8]) -> RunFacts? {
    guard let start = html.firstRange(of: Array(summaryTag.utf8))?.upperBound,
      let end = html[start...].firstRange(of: Array("</script>".utf8))?.lowerBound
    else { return nil }
    return RunFacts(report: Array(html[start..<end]))
  }

  /// Returns the records, one in JSON per line that ends with a comma, compressed, and their number: first those that were not accepted, of both the
  /// newest.
  private static func embedded(
    _ records: RunRecords, _ ids: Set<String>?, _ rulebook: Rulebook, accepted: Int, of total: Int, maxBytes: Int
  ) throws(StoreUnavailable) -> (bytes: [UInt8], count: Int) {
    var limit = maxRecords
    while true {
      let (bytes, count) = try Self.embedded(
        limit, records, ids, rulebook, accepted: accepted, of: total, maxBytes: maxBytes)
      if bytes.count <= maxBytes || limit == 0 { return (bytes, count) }
      // The newest ones did not fit: without as many of the oldest they do.
      limit = min(count, limit) * 9 / 10
    }
  }

  /// Returns the newest `limit` records; fewer if they are larger than `maxBytes`.
  private static func embedded(
    _ limit: Int, _ records: RunRecords, _ ids: Set<String>?, _ rulebook: Rulebook, accepted: Int, of total: Int,
    maxBytes: Int
  ) throws(StoreUnavailable) -> (bytes: [UInt8], count: Int) {
    var deflate = Deflate()
    var count = 0
    for isAccepted in [false, true] {
      var skipped = (isAccepted ? accepted : total - accepted) - (limit - count)
      var iterator = records.makeIterator()
      while let group = try iterator.next() {
        var text: [UInt8] = []
        for record in group where record.accepted == isAccepted {
          let owner = records.attribution.owner(of: record)
          if let ids, owner.map({ ids.contains($0.run) }) != true { continue }
          skipped -= 1
          guard skipped < 0 else { continue }
          let findings = records.findings[record.name]?.map(\.kind.rawValue) ?? []
          var writer = JSONWriter(capacity: 2048)
          writer.object {
            record.writeMembers(
              to: &$0, as: .seq(record.seq), rulebook: rulebook, owner: owner, findings: findings, shortensChecks: true)
            if let number = owner?.number { $0.member("test_number", number) }
          }
          text += writer.bytes
          text += ",\n".utf8
          count += 1
        }
        deflate.append(text)
        guard deflate.bytes.count <= maxBytes else { return (deflate.finish(), count) }
      }
    }
    return (deflate.finish(), count)
  }
}
