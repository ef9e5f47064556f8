import APNSRules
import Testing

/// What every verdict of this reason looks like.
func expect(
  _ verdict: Verdict, _ reason: Reason?, sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(verdict.reason == reason, "\(verdict.rule)", sourceLocation: sourceLocation)
  #expect(verdict.status == reason?.status ?? 200, sourceLocation: sourceLocation)
  #expect(verdict.isAccepted == (reason == nil), sourceLocation: sourceLocation)
  #expect((verdict.failed == nil) == (reason == nil), sourceLocation: sourceLocation)
  #expect((verdict.timestamp != nil) == (verdict.status == 410), sourceLocation: sourceLocation)
  #expect(!verdict.rule.isEmpty, sourceLocation: sourceLocation)
  // The list of checks ends with the one that failed, and all before it are in order.
  #expect(verdict.checks.first?.check == .method, sourceLocation: sourceLocation)
  #expect(verdict.checks.dropLast().allSatisfy { $0.ok }, sourceLocation: sourceLocation)
  #expect(verdict.checks.last?.ok == (reason == nil), sourceLocation: sourceLocation)
  if let failed = verdict.failed {
    #expect(verdict.checks.last?.check == failed, sourceLocation: sourceLocation)
  }
}

extension Verdict {
  /// Its explanation without the values of the request.
  var rule: String { detail(headers: UnsafeRawBufferPointer(start: nil, count: 0), bodySize: 0) }
}
