import APNSMockTestSupport
import Testing

@testable import APNSMockRules

/// A verdict that overwrites another one.
@Suite struct VerdictTests {
  static let changes: [Row] = [
    Row("as it is", nil) { _ in },
    Row("no topic", .missingTopic) { $0["apns-topic"] = nil },
    Row("no credential", .missingProviderToken) { $0["authorization"] = nil },
    Row("another method", .methodNotAllowed) { $0[":method"] = "GET" },
    Row("by certificate", nil) { $0.useCertificate() },
  ]

  /// The set has a bit for every check.
  @Test func checkSetHoldsEveryCheck() {
    let all = CheckSet(Check.allCases)
    for check in Check.allCases {
      #expect(all.contains(check) && CheckSet([check]).contains(check))
      var others = all
      others.remove(check)
      #expect(Check.allCases.filter(others.contains) == Check.allCases.filter { $0 != check })
    }
  }

  @Test(arguments: changes, changes) func reusedVerdictIsReset(first: Row, second: Row) {
    var verdict = first.validate()
    var push = TestPush()
    second.change(&push)
    let rulebook = push.rulebook
    rulebook.validate(
      push.request, authentication: &push.authentication, keys: push.keys, now: push.now,
      isRegistered: { _ in false }, findChannel: { _, _ in nil }, into: &verdict)
    let alone = second.validate()
    #expect(verdict.isAccepted == alone.isAccepted)
    #expect(verdict.status == alone.status)
    #expect(verdict.reason == second.reason)
    #expect(verdict.rule == alone.rule)
    #expect(verdict.failed == alone.failed)
    #expect(verdict.facts == alone.facts)
    #expect(verdict.credential == alone.credential)
    #expect(verdict.token?.keyID == alone.token?.keyID)
    #expect(verdict.checks.map(\.check) == alone.checks.map(\.check))
  }
}
