import Foundation
import Testing

@testable import APNSMockInbox

/// Verification documents for tests, with apostrophes in place of quotation marks.
enum VerificationFixture {
  static func verification(
    _ json: String, in context: FilterContext = FilterContext(rulebook: PushFixture.rulebook)
  ) throws -> Verification {
    try Verification(json: Array(json.replacing("'", with: "\"").utf8), in: context)
  }

  static let scene = VerificationContext(rulebook: PushFixture.rulebook, seed: 918_273, profile: "flaky-503?rate=0.2")

  /// Returns the report on an inbox's current contents.
  static func report(_ json: String, in inbox: Inbox) async throws -> VerificationReport {
    let snapshot = inbox.snapshot()
    let context = FilterContext(now: PushFixture.noon, rulebook: PushFixture.rulebook, snapshot: snapshot)
    return try #require(try await inbox.verify(try verification(json, in: context), in: scene))
  }

  /// Returns a push with a payload, with apostrophes in place of quotation marks.
  static func push(
    _ payload: String = "{'aps':{'alert':'hi'}}", topic: String = "com.acme.app",
    _ change: (inout PushFixture) -> Void = { _ in }
  ) -> Record {
    PushFixture {
      $0.body = Array(payload.replacing("'", with: "\"").utf8)
      $0.headers = [("apns-topic", topic), ("apns-push-type", "alert")]
      change(&$0)
    }.record
  }

  /// Returns the attempts of one push, at these milliseconds after noon; all but the last end with 503.
  static func attempts(
    _ times: [Int64], to device: String = PushFixture.deviceToken, finally last: Record.Outcome = .accepted
  ) -> [Record] {
    times.enumerated().map { index, time in
      push {
        $0.deviceToken = device
        $0.now = PushFixture.noon + time
        $0.attempt = Int32(index + 1)
        $0.outcome = index == times.count - 1 ? last : .rejected
        $0.sentResponse = Record.SentResponse(status: $0.outcome == .accepted ? 200 : 503)
      }
    }
  }
}
