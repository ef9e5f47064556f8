import MockAPNS
import Testing

extension MockServer {
  /// The inbox in the format of `apns-mock export`.
  var exportedInbox: String {
    // An empty query is valid.
    (try? pushes().map { "\($0.json)\n" }.joined()) ?? ""
  }

  /// Adds the report to the running test as a warning, and an inbox that is not empty as an attachment.
  func recordReport(at location: SourceLocation) {
    #if compiler(>=6.3)
      Issue.record(Comment(rawValue: report()), severity: .warning, sourceLocation: location)
    #else
      print(report())
    #endif
    let inbox = exportedInbox
    if !inbox.isEmpty { Attachment.record(inbox, named: "inbox.ndjson", sourceLocation: location) }
  }
}
