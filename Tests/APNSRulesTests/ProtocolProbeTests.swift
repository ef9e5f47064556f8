import APNSMockRules
import APNSMockHTTPMessage
import Foundation
import APNSMockTestSupport
import Testing

/// The probes of `apns-mock compare`: the rules give the answers in the list, and section 14 of Protocol.md counts them.
struct ProtocolProbeTests {
  @Test func namesAreUnique() {
    #expect(Set(ProtocolProbe.all.map(\.name)).count == ProtocolProbe.all.count)
    #expect(ProtocolProbe.all.count > 250)
  }

  @Test func rulesGiveTheAnswers() {
    for probe in ProtocolProbe.all {
      var push = TestPush()
      let token = String(push.token.authorization.dropFirst("bearer ".count))
      push.fields = probe.fields(topic: TestPush.topic, providerToken: token, deviceToken: TestPush.deviceToken)
      push.body = probe.body
      push.headersTooLarge = push.request.headers.listSize > 8000
      var key = FakeSignature.key()
      key.teamTopics = [TestPush.topic]
      push.trustedKeys = [key]
      push.requiresKnownTopics = true
      let verdict = push.validate()
      #expect(
        verdict.status == probe.status && verdict.reason == probe.reason,
        "\(probe.name): \(verdict.status) \(verdict.reason?.text ?? "-")")
    }
  }

  /// Nothing is delivered: each probe that needs no device is rejected, and has the device token of zeros or none that is valid.
  @Test func probesDeliverNothing() {
    for probe in ProtocolProbe.all where probe.need != .device {
      #expect(probe.status >= 400, "\(probe.name)")
      let path = probe.fields.first { $0.name == ":path" }?.value ?? ""
      let digits = path.split(separator: "/").last ?? ""
      let isToken = digits.count >= 64 && digits.allSatisfy(\.isHexDigit)
      #expect(!isToken || digits.allSatisfy { $0 == "0" }, "\(probe.name)")
    }
  }

  /// Requests have placeholders, so that evidence has no secrets.
  @Test func requestsHaveNoSecrets() {
    for probe in ProtocolProbe.all {
      let text = probe.fields.map(\.value).joined(separator: "\n")
      let filled = probe.fields(topic: "TOPIC", providerToken: "JWT", deviceToken: "DEVICE").map(\.1).joined(
        separator: "\n")
      #expect(!filled.contains("<topic>") && !filled.contains("<provider-token>") && !filled.contains("<device-token>"))
      #expect(!text.contains("eyJ"))
    }
  }

  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The part of a file of `compare --report` that the table needs.
  private struct Evidence: Decodable {
    struct Result: Decodable {
      struct Answer: Decodable {
        var status: Int?
        var reason: String?
      }

      var name: String
      var upstream: Answer
    }

    var results: [Result]
  }

  /// The answers in the files that users contributed, in the folder `Evidence`.
  private static let answers: [Evidence.Result] = {
    let folder = root.appending(path: "Evidence")
    let files = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
    return files.filter { $0.pathExtension == "json" }.flatMap { file in
      (try? JSONDecoder().decode(Evidence.self, from: Data(contentsOf: file)))?.results ?? []
    }
  }()

  /// How many contributed answers to the probes of a fact agree with the rules.
  private static func evidence(for fact: ProtocolProbe.Fact) -> String {
    let probes = Dictionary(uniqueKeysWithValues: ProtocolProbe.all.filter { $0.fact == fact }.map { ($0.name, $0) })
    let given = answers.compactMap { answer in probes[answer.name].map { ($0, answer.upstream) } }
    let agreeing = given.count { probe, answer in answer.status == probe.status && answer.reason == probe.reason?.text }
    return given.isEmpty ? "none" : "\(agreeing) of \(given.count) answers agree"
  }

  private static var table: String {
    var facts: [(fact: ProtocolProbe.Fact, need: ProtocolProbe.Need, count: Int)] = []
    for probe in ProtocolProbe.all {
      if let index = facts.firstIndex(where: { $0.fact == probe.fact && $0.need == probe.need }) {
        facts[index].count += 1
      } else {
        facts.append((probe.fact, probe.need, 1))
      }
    }
    let rows = facts.map { fact, need, count in
      let needed =
        switch need {
        case .nothing: "–"
        case .device: "`--device-token`"
        case .providerTokens: "`--probe-tokens`"
        }
      return "| \(fact.section) | \(fact.text) | \(count) | \(needed) | \(evidence(for: fact)) |\n"
    }
    return "| Section | Fact | Probes | Needs | Evidence files |\n|---|---|---|---|---|\n" + rows.joined()
  }

  /// Section 14 of Protocol.md has the facts with their numbers of probes. `UPDATE_PAGES=1` writes them.
  @Test func pageHasTheTable() throws {
    let page = Self.root.appending(path: "Documentation/Protocol.md")
    var text = try String(contentsOf: page, encoding: .utf8)
    let begin = try #require(text.firstRange(of: "| Section | Fact | Probes |"))
    let end = try #require(text[begin.lowerBound...].firstRange(of: "\n\n"))
    let range = begin.lowerBound..<text.index(after: end.lowerBound)
    if ProcessInfo.processInfo.environment["UPDATE_PAGES"] != nil {
      text.replaceSubrange(range, with: Self.table)
      try text.write(to: page, atomically: true, encoding: .utf8)
    } else {
      #expect(text[range] == Self.table[...])
    }
  }
}
