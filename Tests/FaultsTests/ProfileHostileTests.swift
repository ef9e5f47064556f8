import APNSMockNotation
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults

/// Hostile texts: they take few resources and result in a problem.
@Suite struct ProfileHostileTests {
  private static let most = ProfileFileReader.limits.length - 100

  private static func repeated(_ text: String, to length: Int = most) -> String {
    String(repeating: text, count: length / text.utf8.count)
  }

  private static let bomb = (1...500).reduce("a0: &a0 [x, x]\n") { $0 + "a\($1): &a\($1) [*a\($1 - 1), *a\($1 - 1)]\n" }

  @Test(
    arguments: [
      (repeated("["), "nesting"), (repeated("- "), "nesting"), (repeated("{a: "), "nesting"),
      (repeated("- ", to: 100), "nested deeper than 32"),
      (repeated("{a: ", to: 200) + repeated("}", to: 50), "nested deeper"),
      (repeated("? "), "keys must be scalars"), (repeated("[[a]: 1]: 1\n"), "keys must be scalars"),
      ("? [a]\n: 1", "a key must be a scalar, not a list"), ("{[a]: 1}", "a key must be a scalar, not a list"),
      ("a: &a [1]\nb: &b [*a]\nc: &c [*b]\nd: &d [*c]\ne: &e [*d]\n*e : 1", "keys must be scalars"),
      (bomb, "more than 20000 values"), ("[" + repeated("1,") + "]", "more than 20000 values"),
      (repeated("a", to: 1 << 20), "longer than 256 KiB"),
      ("a: \u{0}", "control characters"), ("\u{7F}", "control characters"), ("a: \u{FFFE}", "control characters"),
      ("\"\\ud800\"", "invalid YAML"), ("&a [*a]", "undefined alias"), ("*a", "undefined alias"),
      ("!!binary x", "tags (tag:yaml.org,2002:binary)"), ("!x {a: 1}", "tags (!x)"), ("!!set {a}", "tags"),
      ("seed: " + repeated("9", to: 100_000), "is not a whole number"), ("seed: .nan", "is not a whole number"),
      ("seed: 1e400", "is not a whole number"), ("seed: !!int 5", "tags"),
      (repeated("\t"), "invalid YAML"), (repeated("\"a"), "invalid YAML"), (repeated("&a "), "invalid YAML"),
      (repeated("%YAML 1.1\n"), "invalid YAML"), (repeated("---\n"), "the file contains a second document"),
      ("a: 1\n...\n---\nb: 1", "a second document"), (repeated("k", to: 1000) + ": 1", "kkk…: unknown"),
      (repeated("a: 1\n"), "duplicate keys: a"), ("<<: {a: 1}", "<<: unknown, did you mean \"extends\"?"),
      ("", "the file is empty"), (repeated(" "), "the file is empty"),
      (repeated("#\n"), "the file is empty"),
    ])
  func hostileTextIsRejected(text: String, message: String) {
    let problems = ProfileFixture.lint(text)
    #expect(problems.first?.contains(message) == true, "\(problems.first?.prefix(200) ?? "no problem")")
    #expect(problems.count == 1)
  }

  @Test func aliasesThatSaveTyping() throws {
    let rules = (1...30).map { "  - {when: *shop, trigger: {after: \($0)}, do: *down}\n" }.joined()
    let profile = try ProfileFixture.profile(
      "rules:\n  - {when: &shop {topic: shop}, trigger: {first: 1}, do: &down {respond: {status: 503}}}\n" + rules)
    #expect(profile.rules.count == 31)
    #expect(profile.rules.allSatisfy { $0.condition == Condition([.init(.topic, .equals("shop"))]) })
  }

  /// Keys that look like a list or an alias.
  @Test func starsAndQuestionMarksInTexts() {
    let rule = "  - {when: {topic: {glob: \"*x\"}, payload: {/a: 'so ? *off', /b: {glob: \"* *\"}}}, do: {hang: }}\n"
    #expect(
      !ProfileFixture.lint("summary: is it so ?\nrules:\n" + String(repeating: rule, count: 5)).contains {
        $0.contains("error")
      })
    #expect(ProfileFixture.lint("# ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ?\nsummary: fine") == [])
  }

  @Test func byteOrderMarkAndWindowsLineEndings() {
    #expect(ProfileFixture.lint("\u{FEFF}name: x\r\nsummary: z\r\n") == [])
  }

  @Test func problemsAreBounded() {
    let text = "rules:\n" + String(repeating: "  - {x: 1}\n", count: 3000)
    let problems = ProfileFixture.lint(text)
    #expect(problems.count == ProblemList.limit + 1)
    #expect(problems.contains("p.yaml: more than 100 problems, the others are omitted, correct these first"))
  }

  @Test func rulesAreBounded() {
    let text = "rules:\n" + String(repeating: "  - do: {hang: }\n", count: ProfileBuilder.ruleLimit + 1)
    #expect(ProfileFixture.lint(text).contains("p.yaml:1002:5: rules[1000]: more than 1000 rules"))
  }

  @Test func conditionsInConditionsAreBounded() {
    let depth = ProfileFileReader.limits.depth
    func text(_ count: Int) -> String {
      "rules: [{when: " + String(repeating: "{not: ", count: count) + "{topic: x}"
        + String(repeating: "}", count: count)
        + ", do: {close: }}]"
    }
    #expect(ProfileFixture.lint(text(depth - 4)) == [])
    #expect(ProfileFixture.lint(text(depth - 3)).first?.hasSuffix("nested deeper than 32") == true)
  }
}
