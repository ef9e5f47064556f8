import APNSRules
import HTTPMessage
import Testing

@testable import Faults
@testable import Inbox

/// A query means the same in a rule as in the inbox.
@Suite struct RuleQueryTests {
  /// The push of `QueryMatchingTests.record` as rules see it.
  static let traffic: Traffic = {
    let fixture = QueryMatchingTests.fixture
    let request = fixture.request
    var standing = ConnectionStanding()
    let keys = KeyRing(
      version: 1, keys: [TrustedKey(keyID: "MOCKKEY001", teamID: "MOCKTEAM01", verifies: { _, _, _ in true })])
    let verdict = PushFixture.rulebook.judge(
      request, standing: &standing, keys: keys, devices: DeviceTable(), now: fixture.now)
    return Traffic(
      connection: Traffic.Connection(number: 17, client: "127.0.0.1"),
      push: Traffic.Push(
        request: request, verdict: verdict, key: fixture.pushKey, attempt: Int(fixture.attempt), now: fixture.now))
  }()

  /// Whether a rule with this query fires; nil if the query asks for what a rule cannot know.
  static func fires(_ query: String) throws -> Bool? {
    let names = try Set(QueryTextTests.terms(query).map { String($0.drop { $0 == "!" }.prefix { $0 != "|" }) })
    guard names.isDisjoint(with: QueryField.others.keys), !names.isEmpty else { return nil }
    // The client's id is another one than the server's.
    guard names.isDisjoint(with: ["apns_id", "id"]) else { return nil }
    let condition = PreparedCondition(Condition(try Condition.tests(query: query)))
    var reading = Reading(traffic, identity: .content)
    return condition.miss(&reading) == nil
  }

  @Test(arguments: QueryMatchingTests.fields + QueryMatchingTests.payloads + QueryMatchingTests.combinations)
  func meansTheSameAsInTheInbox(query: String, expected: Bool) throws {
    guard let fires = try Self.fires(query) else { return }
    #expect(fires == expected)
    #expect(try QueryMatchingTests.matches(query) == fires)
  }

  @Test(
    arguments: [
      "connection:c17", "connection:c1*", "!connection:c17", "connection:17", "listener:0..3", "priority:*",
      "team_id:*",
      "header.x-note:*B", "header.X-Note:\"a  B\"", "header.authorization:*SECRET*", "text:SECRETSECRET",
      "!header.x-none:*", "header.x-note:x header.x-note:*", "push_type:alert push_type:voip topic:com.acme.*",
    ])
  func meansTheSame(query: String) throws {
    guard let fires = try Self.fires(query) else {
      Issue.record("the query has a field that rules cannot have")
      return
    }
    #expect(try QueryMatchingTests.matches(query) == fires)
  }

  @Test func mostQueriesAreCompared() throws {
    let compared = try (QueryMatchingTests.fields + QueryMatchingTests.payloads).filter {
      try Self.fires($0.query) != nil
    }
    #expect(compared.count > 100)
  }

  /// Each field of the inbox either works in a rule or has an error of its own there.
  @Test func allFieldsAreDecided() {
    let names = Set(FilterField.names).subtracting(["payload./pointer", "header.name"])
    #expect(Set(QueryField.allCases.map(\.rawValue)).union(QueryField.others.keys) == names)
    #expect(Set(QueryField.aliases.keys) == Set(FilterField.aliases.map(\.name)))
    for alias in FilterField.aliases { #expect(QueryField.aliases[alias.name]?.rawValue == alias.field.rawValue) }
  }
}
