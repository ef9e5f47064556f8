import APNSMockRules
import APNSMockNotation
import Synchronization
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults
@testable import APNSMockInbox

/// The names of rules, profiles, reasons and findings that a filter accepts.
@Suite struct KnownNamesTests {
  private static let inbox: Inbox = {
    let inbox = Inbox(maxRecords: 10, maxBytes: 1 << 20)
    inbox.append(
      PushFixture {
        $0.outcome = .rejected
        $0.sentResponse = Record.SentResponse(status: 503)
        $0.wireDetails = WireDetails(
          injections: [
            Injection(
              profile: "gone-profile", rule: "gone-rule",
              action: .respond(Action.Response(status: 503, reason: "GoneReason")), continues: false)
          ], unusualReason: "GoneReason")
      }.record)
    return inbox
  }()

  private static let names: FaultNames = {
    var names = FaultNames()
    let rule = Rule(name: "known-rule", action: .respond(Action.Response(status: 503, reason: "KnownReason")))
    names.add(Profile(name: "known-profile", rules: [rule]))
    names.add(
      Rule(
        name: "menu",
        action: .choose([
          Action.Choice(
            weight: 1,
            action: .sequence(
              key: .push, steps: [.respond(Action.Response(status: 500, reason: "NestedReason"))], onEnd: .stay))
        ])))
    return names
  }()

  private static let context = FilterContext(
    rulebook: PushFixture.rulebook, inbox: inbox, known: KnownNames(faults: [{ FaultNames.magicTokens }, { names }]))

  @Test(arguments: [
    "rule:known-rule", "rule:menu", "rule:magic-4100", "profile:known-profile", "reason:KnownReason",
    "reason:NestedReason", "reason:Unregistered", "finding:hot-retry", "!rule:known-rule",
    // Names that occur in the inbox.
    "rule:gone-rule", "profile:gone-profile", "reason:GoneReason",
    // Patterns, and fields that accept any value.
    "rule:no-such-*", "reason:*", "finding:x*", "topic:no.such", "key_id:NONE", "rule:\"known-rule\"",
  ])
  func knownNameIsAccepted(query: String) throws { _ = try Filter(query: query, in: Self.context) }

  @Test(arguments: [
    ("rule:known-rul", "Did you mean known-rule?"), ("profile:known-rule", "The known names are known-profile."),
    ("reason:knownreason", "Did you mean KnownReason?"), ("finding:hot-retries", "Did you mean hot-retry?"),
    ("!reason:BadTopc", "Did you mean BadTopic?"), ("rule:\"known-rule \"", "Did you mean known-rule?"),
    ("rule:gone-ruler", "A pattern with * is not checked."),
  ])
  func unknownNameIsRejected(query: String, hint: String) {
    let error = #expect(throws: FilterError.self) { try Filter(query: query, in: Self.context) }
    #expect(error?.hint.contains(hint) == true, "\(error?.hint ?? "")")
    #expect(throws: Never.self) { try Filter(query: query, in: FilterContext(rulebook: PushFixture.rulebook)) }
  }

  private final class Asked: Sendable {
    let indices = Mutex<[Int]>([])
  }

  @Test func suggestionsStopEarly() throws {
    let asked = Asked()
    let known = KnownNames(
      faults: [Self.names, FaultNames()].enumerated().map { index, names in
        {
          asked.indices.withLock { $0.append(index) }
          return names
        }
      })
    _ = try Filter(query: "reason:BadTopic", in: FilterContext(known: known))
    #expect(asked.indices.withLock { $0 } == [])
    _ = try Filter(query: "rule:known-rule", in: FilterContext(known: known))
    #expect(asked.indices.withLock { $0 } == [0])
    _ = try? Filter(query: "rule:unknown", in: FilterContext(known: known))
    #expect(asked.indices.withLock { $0 } == [0, 0, 1])
  }
}
