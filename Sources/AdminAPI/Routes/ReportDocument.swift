internal import APNSMockEmbeddedFiles
package import APNSMockInbox
package import APNSMockRules
internal import APNSMockNotation
internal import APNSMockTLSEngine

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The report of runs as one HTML file: the web UI over embedded records. It opens from disk and makes no request.
package enum ReportDocument {
  /// The maximum number of embedded records, and the maximum size of these in the file: the rest of its 15 MB is the page.
  private static let maxRecords = 20_000, maxBytes = 14_000_000

  /// Returns the document.
  ///
  /// - Parameters:
  ///   - ids: The runs; nil for all, and the pushes of none.
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  package static func html(
    _ report: RunReport, of records: RunRecords, _ ids: Set<String>? = nil, by rulebook: Rulebook
  ) throws(StoreUnavailable) -> [UInt8] {
    let (embedded, count) = try Self.embedded(records, ids, rulebook, accepted: report.acceptedCount, of: report.pushes)
    var writer = JSONWriter()
    writer.object { writer in
      report.writeMembers(to: &writer)
      writer.member("embedded", count)
    }
    // Within a script element, an HTML parser looks only for its end.
    let escaped = writer.bytes.flatMap { $0 == UInt8(ascii: "<") ? Array("\\u003c".utf8) : [$0] }
    let summary = String(decoding: escaped, as: UTF8.self)
    let text = """
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
            <noscript><p class="notice">This report requires JavaScript.</p></noscript>
          </main>
        </div>
        <div id="toasts" class="toasts" role="status" aria-live="polite"></div>
        <script type="application/json" id="\(summaryID)">\(summary)</script>
        <script type="application/octet-stream" id="records">\(Data(embedded).base64EncodedString())</script>
        <script type="module">\(script)</script>
      </body>
      </html>

      """
    return Array(text.utf8)
  }

  private static let summaryID = "summary"
  private static let style = String(
    decoding: WebUIRoutes.bundle.files[WebUIBundle.styleName]?.bytes ?? [], as: UTF8.self)
  private static let script = WebUIBundle.script(of: "modules/report/main.js", in: WebUIRoutes.files)

  /// The content security policy: nothing but the script and the style of this file.
  private static let policy = """
    default-src 'none'; script-src '\(hash(script))'; style-src '\(hash(style))'; img-src data:; \
    base-uri 'none'; form-action 'none'
    """

  private static func hash(_ text: String) -> String {
    let words = Array(text.utf8).withUnsafeBytes { SHA256.words(of: $0) }
    let bytes = [words.0, words.1, words.2, words.3].flatMap { word in
      stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> UInt64($0)) }
    }
    return "sha256-" + Data(bytes).base64EncodedString()
  }

  /// Returns the member `facts` of a report, with which a later run is compared.
  ///
  /// - Returns: nil if the file is no report, or of an unknown format.
  package static func facts(in html: [UInt8]) -> RunFacts? {
    let opening = Array("<script type=\"application/json\" id=\"\(summaryID)\">".utf8)
    guard let start = html.firstRange(of: opening)?.upperBound,
      let end = html[start...].firstRange(of: Array("</script>".utf8))?.lowerBound
    else { return nil }
    return RunFacts(report: Array(html[start..<end]))
  }

  /// Returns the records, one in JSON per line, compressed, and their number: first those that were not accepted, of both the
  /// newest.
  private static func embedded(
    _ records: RunRecords, _ ids: Set<String>?, _ rulebook: Rulebook, accepted: Int, of total: Int
  ) throws(StoreUnavailable) -> (bytes: [UInt8], count: Int) {
    var deflate = Deflate()
    var count = 0
    for isAccepted in [false, true] {
      var skipped = (isAccepted ? accepted : total - accepted) - (maxRecords - count)
      var iterator = records.makeIterator()
      while let group = try iterator.next() {
        var text: [UInt8] = []
        for record in group where record.accepted == isAccepted {
          let owner = records.attribution.owner(of: record)
          if let ids, owner.map({ ids.contains($0.run) }) != true { continue }
          skipped -= 1
          guard skipped < 0 else { continue }
          let findings = records.findings[record.seq]?.map(\.kind.rawValue) ?? []
          var writer = JSONWriter(capacity: 2048)
          writer.object {
            record.writeMembers(to: &$0, rulebook: rulebook, owner: owner, findings: findings)
          }
          text += writer.bytes
          text.append(UInt8(ascii: "\n"))
          count += 1
        }
        deflate.append(text)
        // Base64 has four characters for three bytes.
        guard deflate.bytes.count / 3 * 4 < maxBytes else { return (deflate.finish(), count) }
      }
    }
    return (deflate.finish(), count)
  }
}
