import APNSMockRules
import APNSMockNotation
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults

@Suite struct SchemaTests {
  private static let root = try? YAMLNode.parse(ProfileSchema.text)

  @Test func isJSON() throws {
    var text = ProfileSchema.text
    #expect(text.withUTF8 { JSONText.problem(in: UnsafeRawBufferPointer($0)) } == nil)
    let root = try #require(Self.root)
    #expect(root["$schema"]?.text == "https://json-schema.org/draft/2020-12/schema")
    #expect(root["$ref"]?.text == "#/$defs/profile")
  }

  @Test func schemaHasTheKeysOfTheParser() throws {
    for map in MapDescription.all {
      let definition = try #require(Self.root?["$defs"]?[map.name], "\(map.name)")
      #expect(definition["properties"]?.names == map.fields.map(\.name), "\(map.name)")
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
    #expect(references.count > 40)
    for reference in references {
      let found = reference.dropFirst(2).split(separator: "/").reduce(Optional(root)) { $0?[String($1)] }
      #expect(found != nil, "\(reference)")
    }
    let defined = Set(root["$defs"]?.names ?? []).subtracting([Profile.schema.name, MatchKey.description.name])
    #expect(defined.subtracting(references.map { String($0.dropFirst(8)) }) == [])
  }

  /// A profile for each map, with % in the place of a key.
  private static let texts = [
    "profile": "%", "parameter": "params: {p: {%}}", "limits": "limits: {%}", "stop": "stop: {%}",
    "rule": "rules: [{%}]", "condition": "rules: [{at: response, when: {%}}]",
    "provider_token": "rules: [{when: {jwt: {%}}}]", "match": "rules: [{when: {payload: {/a: {%}}}}]",
    "trigger": "rules: [{trigger: {%}}]", "probability": "rules: [{trigger: {probability: {%}}}]",
    "ramp": "rules: [{trigger: {probability: {ramp: {%, to: 1, over: 1s}}}}]",
    "rate": "rules: [{trigger: {over_limit: {%, limit: 1}}}]", "window": "rules: [{trigger: {window: {%}}}]",
    "response": "rules: [{do: {respond: {%}}}]", "ago": "rules: [{do: {respond: {timestamp: {%}}}}]",
    "date": "rules: [{do: {respond: {status: 503, retry_after: {%}}}}]",
    "delay": "rules: [{do: {delay: {%}}}]", "uniform": "rules: [{do: {delay: {uniform: {%, min: 1s, max: 2s}}}}]",
    "lognormal": "rules: [{do: {delay: {lognormal: {%, median: 1s, sigma: 1, max: 2s}}}}]",
  ]

  /// The parser reads every key of every map: no value in the file can be a list of lists.
  @Test(arguments: MapDescription.all.flatMap { map in map.fields.map { (map.name, $0.name) } })
  func everyKeyIsRead(map: String, key: String) throws {
    let action = Action.Name(rawValue: map).map { name in
      let point = InjectionPoint.allCases.first(where: name.injectionPoints.contains) ?? .request
      return "rules: [{at: \(point.rawValue), do: {\(map): {%, chunks: 2, over: 1s}}}]"
    }
    var text = try #require(Self.texts[map] ?? action, "no text for \(map)")
    // The key that is tested replaces the same key in the text.
    for other in ["to: 1", "over: 1s", "limit: 1", "min: 1s", "max: 2s", "median: 1s", "sigma: 1", "chunks: 2"]
    where other.hasPrefix(key + ":") || map != "dribble" && action != nil {
      text = text.replacing(", \(other)", with: "")
    }
    // Debug data and bodies may be any JSON, so they are made too long instead.
    let value = key == "debug" || key == "body" ? "[\"\(String(repeating: "x", count: 70_000))\"]" : "[[[x]]]"
    let problems = ProfileLibrary().problems(
      in: ProfileFixture.source(text.replacing("%", with: "\(key): \(value)")))
    #expect(problems.contains { $0.path.contains(key) && $0.message != "unknown" }, "\(problems)")
  }
}

extension YAMLNode {
  var names: [String] {
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
