import APNSMockRules
import Testing

/// Expects the reason, and everything that follows from it for any verdict.
func expect(
  _ verdict: Verdict, _ reason: Reason?, accepted status: Int = 200,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(verdict.reason == reason, "\(verdict.rule)", sourceLocation: sourceLocation)
  #expect(verdict.status == reason?.status ?? status, sourceLocation: sourceLocation)
  #expect(verdict.isAccepted == (reason == nil), sourceLocation: sourceLocation)
  #expect((verdict.failed == nil) == (reason == nil), sourceLocation: sourceLocation)
  #expect((verdict.timestamp != nil) == (verdict.status == 410), sourceLocation: sourceLocation)
  #expect(!verdict.rule.isEmpty, sourceLocation: sourceLocation)
  // Only the last check in the list may have failed.
  #expect(verdict.checks.first?.check == .method, sourceLocation: sourceLocation)
  #expect(verdict.checks.dropLast().allSatisfy { $0.ok }, sourceLocation: sourceLocation)
  #expect(verdict.checks.last?.ok == (reason == nil), sourceLocation: sourceLocation)
  if let failed = verdict.failed {
    #expect(verdict.checks.last?.check == failed, sourceLocation: sourceLocation)
  }
}

extension Verdict {
  /// The verdict's explanation without values from the request.
  var rule: String { detail(headers: UnsafeRawBufferPointer(start: nil, count: 0), bodySize: 0) }
}
