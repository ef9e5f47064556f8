import APNSMockRules
import APNSMockTestSupport
import Testing

@testable import APNSMockInbox

/// The findings `ignored-token` and `probable-mistake`.
@Suite struct MistakeFindingsTests {
  private static let new: Set<Finding.Kind> = [.ignoredToken, .probableMistake]

  private static let certificate = ProviderCertificate(
    subjectUID: "com.acme.app", topics: ["com.acme.app"], development: true, production: true, commonName: nil,
    fingerprint: "00")

  /// A server that knows the token `known` and the topic `com.acme.app`.
  private static let targets = KnownTargets(
    deviceTokenProblem: { $0.count == 8 ? "the token problem" : nil },
    topicProblem: { $0.elementsEqual("com.acme.ap".utf8) ? "the topic problem" : nil })

  private static func findings(on record: Record, in inbox: Inbox = Inbox(knownTargets: targets)) -> [Finding] {
    inbox.append(record)
    // Only a store cannot be read.
    let report = try? inbox.findings(by: PushFixture.rulebook, in: .allKinds)
    let findings = report?.findings.filter { new.contains($0.kind) } ?? []
    // Filters and records have what is reported.
    for kind in new {
      let isReported = findings.contains { $0.kind == kind }
      #expect(record.hasFinding(by: PushFixture.rulebook, in: inbox) { $0 == kind } == isReported)
      #expect(record.findingKinds(by: PushFixture.rulebook, in: inbox).contains(kind) == isReported)
    }
    return findings
  }

  @Test func ignoredToken() {
    let connection = ConnectionFacts(
      id: "c1", listener: 0, client: "", sni: nil, tls: "", certificate: Self.certificate)
    let record = PushFixture { $0.connection = connection }.record
    let findings = Self.findings(on: record)
    #expect(findings.map(\.kind) == [.ignoredToken])
    #expect(findings[0].explanation.hasPrefix("the connection has a client certificate"))
    // A rejected push has it too: the reason says nothing about the token.
    let rejected = PushFixture {
      $0.connection = connection
      $0.headers[0].1 = "com.acme.other"
    }.record
    #expect(Self.findings(on: rejected).map(\.kind) == [.ignoredToken])
    #expect(
      rejected.rejectionDetail?.hasSuffix(
        "; the provider token is ignored, because the connection has a client certificate")
        == true)
    let alone = PushFixture {
      $0.connection = connection
      $0.authorization = []
    }.record
    #expect(Self.findings(on: alone) == [])
    #expect(Self.findings(on: PushFixture().record) == [])
  }

  @Test func probableMistakes() {
    let record = PushFixture {
      $0.deviceToken = "ab12ab12"
      $0.headers[0].1 = "com.acme.ap"
      $0.headers.append(("apns-expiry", "0"))
      $0.body = Array(#"{"aps":{"alert":"hi","thread_id":"t"}}"#.utf8)
    }.record
    let findings = Self.findings(on: record)
    #expect(findings.map(\.kind) == [.probableMistake])
    #expect(
      findings[0].explanation
        == "the header field \"apns-expiry\" is not one of APNs, which ignores it: write apns-expiration; \"thread_id\" in aps "
        + "has no effect: write aps.thread-id; the topic problem; the token problem")
    // Without a server, only names are compared.
    #expect(Self.findings(on: record, in: Inbox())[0].explanation.hasSuffix("write aps.thread-id"))
  }

  /// Of a rejected push, only the device token is compared, and only if it is the cause.
  @Test func rejectedPushes() {
    let malformed = PushFixture {
      $0.deviceToken = "no-token"
      $0.headers.append(("apns-expiry", "0"))
    }.record
    #expect(malformed.verdict?.failed == .deviceToken)
    #expect(Self.findings(on: malformed).map(\.explanation) == ["the token problem"])
    let other = PushFixture {
      $0.deviceToken = "ab12ab12"
      $0.headers.append(("apns-priority", "7"))
    }.record
    #expect(other.verdict?.failed == .priority)
    #expect(Self.findings(on: other) == [])
  }
}
