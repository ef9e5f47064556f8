import APNSRules
import Notation
import Testing

@testable import FaultModel
@testable import Faults

@Suite struct SchemaTests {
  /// All kinds of mappings, in the order in which the schema reaches them from a profile, and those within actions.
  private static let allKeys: [any FileKey.Type] = [
    ProfileKey.self, ParameterKey.self, LimitsKey.self, StopKey.self, RuleKey.self, ConditionKey.self,
    ProviderTokenKey.self, MatchKey.self, TriggerKey.self, ProbabilityKey.self, RampKey.self, RateKey.self,
    WindowKey.self, ResponseKey.self, AgoKey.self, DelayKey.self, UniformKey.self, LognormalKey.self, HoldKey.self,
    LossKey.self, ResetKey.self, ConnectionResetKey.self, GoAwayKey.self, DrainKey.self, DribbleKey.self,
    DropHeaderKey.self, ChangeIDKey.self, TimeKey.self, SettingsKey.self, AlertKey.self, CertificateKey.self,
    SequenceKey.self, NoKey.self,
  ]

  private static let root = try? YAMLNode.parse(ProfileSchema.text)

  @Test func isJSON() throws {
    var text = ProfileSchema.text
    #expect(text.withUTF8 { JSONText.problem(in: UnsafeRawBufferPointer($0)) } == nil)
    let root = try #require(Self.root)
    #expect(root["$schema"]?.text == "https://json-schema.org/draft/2020-12/schema")
    #expect(root["$ref"]?.text == "#/$defs/profile")
  }

  @Test func schemaHasTheKeysOfTheParser() throws {
    for keys in Self.allKeys {
      let definition = try #require(Self.root?["$defs"]?[keys.schemaName], "\(keys)")
      let expected = keys == RuleKey.self ? keys.allNames.filter { $0 != "ttl" } : keys.allNames
      #expect(definition["properties"]?.names == expected, "\(keys)")
      #expect(definition["additionalProperties"]?.text == "false")
    }
    #expect(
      Self.root?["$defs"]?["action"]?["properties"]?.names == Action.Name.allCases.map(\.rawValue))
    #expect(
      Self.root?["$defs"]?["apns"]?["properties"]?.names == APNSSetting.allCases.map(\.rawValue))
  }

  @Test func referencesAreDefined() throws {
    let root = try #require(Self.root)
    let references = root.references
    #expect(references.count > 50)
    for reference in references {
      let found = reference.dropFirst(2).split(separator: "/").reduce(Optional(root)) { $0?[String($1)] }
      #expect(found != nil, "\(reference)")
    }
    let defined = Set(root["$defs"]?.names ?? []).subtracting([ProfileKey.schemaName, "match"])
    #expect(defined.subtracting(references.map { String($0.dropFirst(8)) }) == [])
  }

  /// The parser reads every key of every mapping: no value in the file can be a list of lists.
  @Test(
    arguments: [
      (ProfileKey.self, "%"), (ParameterKey.self, "params: {p: {%}}"), (LimitsKey.self, "limits: {%}"),
      (StopKey.self, "stop: {%}"), (RuleKey.self, "rules: [{%}]"),
      (ConditionKey.self, "rules: [{at: response, when: {%}}]"),
      (ProviderTokenKey.self, "rules: [{when: {jwt: {%}}}]"), (MatchKey.self, "rules: [{when: {payload: {/a: {%}}}}]"),
      (TriggerKey.self, "rules: [{trigger: {%}}]"), (ProbabilityKey.self, "rules: [{trigger: {probability: {%}}}]"),
      (RampKey.self, "rules: [{trigger: {probability: {ramp: {%, to: 1, over: 1s}}}}]"),
      (RateKey.self, "rules: [{trigger: {over_limit: {%, limit: 1}}}]"),
      (WindowKey.self, "rules: [{trigger: {window: {%}}}]"),
      (ResponseKey.self, "rules: [{do: {respond: {%}}}]"), (AgoKey.self, "rules: [{do: {respond: {timestamp: {%}}}}]"),
      (DelayKey.self, "rules: [{do: {delay: {%}}}]"),
      (UniformKey.self, "rules: [{do: {delay: {uniform: {%, min: 1s, max: 2s}}}}]"),
      (LognormalKey.self, "rules: [{do: {delay: {lognormal: {%, median: 1s, sigma: 1, max: 2s}}}}]"),
      (HoldKey.self, "rules: [{do: {hang: {%}}}]"), (LossKey.self, "rules: [{at: response, do: {lose_answer: {%}}}]"),
      (ResetKey.self, "rules: [{do: {reset_stream: {%}}}]"),
      (ConnectionResetKey.self, "rules: [{do: {reset_connection: {%}}}]"),
      (GoAwayKey.self, "rules: [{do: {goaway: {%}}}]"), (DrainKey.self, "rules: [{at: connection, do: {drain: {%}}}]"),
      (DribbleKey.self, "rules: [{at: response, do: {dribble: {%, chunks: 2, over: 1s}}}]"),
      (DropHeaderKey.self, "rules: [{at: response, do: {drop_header: {%}}}]"),
      (ChangeIDKey.self, "rules: [{at: response, do: {change_id: {%}}}]"),
      (TimeKey.self, "rules: [{at: accept, do: {silence: {%}}}]"),
      (SettingsKey.self, "rules: [{at: settings, do: {settings: {%}}}]"),
      (AlertKey.self, "rules: [{at: tls, do: {alert: {%}}}]"),
      (CertificateKey.self, "rules: [{at: tls, do: {certificate: {%}}}]"),
      (SequenceKey.self, "rules: [{do: {sequence: {%}}}]"),
    ] as [(any FileKey.Type, String)])
  func everyKeyIsRead(keys: any FileKey.Type, text: String) {
    for name in keys.allNames where name != "ttl" {
      // The key that is tested replaces the same key in the text.
      var text = text
      for other in ["to: 1", "over: 1s", "limit: 1", "min: 1s", "max: 2s", "median: 1s", "sigma: 1", "chunks: 2"]
      where other.hasPrefix(name + ":") {
        text = text.replacing(", \(other)", with: "")
      }
      // Debug data and bodies may be any JSON, so they are made too long instead.
      let value = name == "debug" || name == "body" ? "[\"\(String(repeating: "x", count: 70_000))\"]" : "[[[x]]]"
      let problems = ProfileLibrary().problems(
        in: ProfileFixture.source(text.replacing("%", with: "\(name): \(value)")))
      #expect(problems.contains { $0.path.contains(name) && $0.message != "unknown" }, "\(name): \(problems)")
    }
  }
}

extension FileKey {
  static var allNames: [String] { allCases.map(\.rawValue) }
}

extension YAMLNode {
  fileprivate var names: [String] {
    guard case .map(let entries) = content else { return [] }
    return entries.map(\.key)
  }

  fileprivate var references: Set<String> {
    switch content {
    case .scalar: return []
    case .list(let nodes): return nodes.reduce(into: []) { $0.formUnion($1.references) }
    case .map(let entries):
      return entries.reduce(into: []) { found, entry in
        if entry.key == "$ref", let text = entry.value.text { found.insert(text) }
        found.formUnion(entry.value.references)
      }
    }
  }
}
