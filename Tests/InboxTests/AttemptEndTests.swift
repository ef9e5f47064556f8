import APNSMockRules
import Foundation
import APNSMockTestSupport
import Testing

@testable import APNSMockInbox

/// The table of decision and ending, over all pairs.
@Suite struct AttemptEndTests {
  /// The outcome of each possible pair; an impossible one is absent.
  private static let table: [Decision: [Ending: Record.Outcome]] = [
    .accepted: [
      .response: .accepted, .reset: .responseLost, .cancelled: .responseLost, .disconnected: .responseLost,
      .pending: .pending, .unknown: .unknown,
    ],
    .rejected: [
      .response: .rejected, .reset: .responseLost, .cancelled: .responseLost, .disconnected: .responseLost,
      .pending: .pending, .unknown: .unknown,
    ],
    .notProcessed: [
      .refused: .unprocessed, .malformed: .malformed, .incomplete: .incomplete, .reset: .unanswered,
      .cancelled: .unanswered, .disconnected: .unanswered, .pending: .pending, .unknown: .unknown,
    ],
    .pending: [.pending: .pending],
    .unknown: [
      .response: .unknown, .reset: .unknown, .cancelled: .unknown, .disconnected: .unknown, .pending: .pending,
      .unknown: .unknown,
    ],
  ]

  @Test(arguments: Decision.allCases, Ending.allCases)
  func outcomes(decision: Decision, ending: Ending) {
    let expected = Self.table[decision]?[ending]
    #expect(AttemptEnd.isPossible(decision, ending) == (expected != nil))
    let end = AttemptEnd(decision, ending)
    #expect(end.ending == ending, "the ending is never changed")
    #expect(AttemptEnd.isPossible(end.decision, end.ending), "what is made is possible")
    if let expected { #expect(Record.Outcome(decision, ending) == expected) }
    if ending == .refused || ending == .incomplete || ending == .malformed { #expect(end.decision == .notProcessed) }
    if ending != .pending { #expect(end.decision != .pending) }
  }

  /// 400 `IdleTimeout` is equivalent to a GOAWAY.
  @Test func idleTimeoutIsUnprocessed() {
    func outcome(_ status: Int, _ reason: Reason) -> Record.Outcome {
      Record.Result(
        .rejected, .response, sentResponse: Record.SentResponse(status: status, reason: reason), finishedAt: 0
      ).outcome
    }
    #expect(outcome(400, .idleTimeout) == .unprocessed)
    #expect(outcome(400, .badTopic) == .rejected)
    #expect(outcome(503, .idleTimeout) == .rejected)
  }

  // MARK: - Format 1

  private static func former(
    _ outcome: FormerResult.Outcome, _ accepted: Bool, status: Int? = nil, verdict: Int? = 200, reset: String? = nil,
    isExcluded: Bool = false, isClosed: Bool = false
  ) -> FormerResult {
    FormerResult(
      outcome: outcome, accepted: accepted, status: status, verdictStatus: verdict, reset: reset,
      isExcluded: isExcluded, isClosed: isClosed)
  }

  @Test(
    arguments: [
      (former(.accepted, true, status: 200), .accepted, .response),
      (former(.rejected, false, status: 400, verdict: 400), .rejected, .response),
      (former(.faulted, false, status: 503), .rejected, .response),
      (former(.faulted, false, status: 200), .unknown, .response),
      (former(.pending, false), .pending, .pending),
      (former(.faulted, true, reset: "INTERNAL_ERROR"), .accepted, .reset),
      (former(.faulted, false, reset: "INTERNAL_ERROR"), .notProcessed, .reset),
      (former(.faulted, false, verdict: 400, reset: "INTERNAL_ERROR"), .unknown, .reset),
      (former(.faulted, true, reset: "REFUSED_STREAM"), .notProcessed, .refused),
      (former(.faulted, false, isExcluded: true), .notProcessed, .refused),
      (former(.faulted, true, isClosed: true), .accepted, .disconnected),
      (former(.rejected, false, verdict: nil, reset: "PROTOCOL_ERROR"), .notProcessed, .malformed),
      (former(.aborted, false, verdict: nil), .notProcessed, .unknown),
      (former(.aborted, true), .accepted, .unknown),
    ] as [(FormerResult, Decision, Ending)])
  func formerResults(former: FormerResult, decision: Decision, ending: Ending) {
    #expect(former.end == AttemptEnd(decision, ending))
    #expect(former.contradiction == nil)
  }

  @Test(arguments: [
    former(.accepted, false, status: 200), former(.rejected, true, status: 400), former(.pending, false, status: 200),
    former(.faulted, true, verdict: nil), former(.aborted, true, verdict: 403),
  ])
  func contradictions(former: FormerResult) { #expect(former.contradiction != nil) }

  @Test func formatOneIsImported() throws {
    let former =
      #"{"seq":1,"accepted":false,"outcome":"faulted","received_at":"2026-01-31T12:00:00.000Z","attempt":1,"#
      + #""connection":{"id":"c1","stream":5,"client":"127.0.0.1:1"},"request":{"method":"POST","path":"/3/device/ab","#
      + #""headers":[],"payload":{},"size":{"bytes":2}},"verdict":{"status":200,"checks":[]},"fault":null,"#
      + #""served":{"status":503,"reason":"ServiceUnavailable"},"findings":[]}"#
    func read(_ text: String) throws -> Inbox {
      var source = InboxImport(maxBytes: 1 << 20)
      try source.read(Array(text.utf8))
      return try source.finish()
    }
    let record = try #require(try read(former).record(seq: 1))
    #expect(record.end == AttemptEnd(.rejected, .response))
    #expect(record.outcome == .rejected)
    let problem = #expect(throws: InboxImport.Problem.self) {
      try read(
        former.replacing(#""accepted":false,"outcome":"faulted""#, with: #""accepted":false,"outcome":"accepted""#))
    }
    #expect(problem?.reason.contains("contradict each other: outcome is accepted, and accepted is false") == true)
  }
}

/// Compares the table of outcomes in the documentation with the code.
@Suite struct OutcomePageTests {
  @Test func tableIsThatOfTheCode() throws {
    var expected: [String: (decisions: Set<String>, endings: Set<String>)] = [:]
    for decision in Decision.allCases {
      for ending in Ending.allCases where AttemptEnd.isPossible(decision, ending) {
        let outcome = Record.Outcome(decision, ending)
        guard outcome != .unknown else { continue }
        expected[outcome.rawValue, default: ([], [])].decisions.insert(decision.rawValue)
        expected[outcome.rawValue, default: ([], [])].endings.insert(ending.rawValue)
      }
    }
    func words(_ cell: String?) -> Set<String> {
      Set((cell ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .init(charactersIn: " `")) })
    }
    let rows = try MarkdownPage("Inbox").table(under: "## Outcomes")
    #expect(rows.count == expected.count)
    for row in rows {
      let outcome = try #require(words(row["outcome"]).first)
      #expect(words(row["decision"]) == expected[outcome]?.decisions, "\(outcome)")
      #expect(words(row["ending"]) == expected[outcome]?.endings, "\(outcome)")
    }
  }
}
