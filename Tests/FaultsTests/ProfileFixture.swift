import APNSMockNotation

@testable import APNSMockFaultModel
@testable import APNSMockFaults

/// Profiles and rules from short texts.
enum ProfileFixture {
  static func source(_ text: String) -> ProfileSource {
    ProfileSource(name: "p", text: text, origin: .file("p.yaml"))
  }

  static func profile(_ text: String, _ parameters: [String: String] = [:]) throws -> Profile {
    try ProfileLibrary().profile(of: source(text), parameters: parameters).profile
  }

  /// Returns the problems that the linter finds in a text.
  static func lint(_ text: String) -> [String] {
    ProfileLibrary().problems(in: source(text)).map(\.description)
  }

  /// Parses a rule whose fields are written as one line of flow style.
  static func rule(_ fields: String) throws -> Rule { try AddedRuleDefinition.parse("{\(fields)}").rule }

  static func condition(_ fields: String, at injectionPoint: InjectionPoint = .request) throws -> Condition {
    let action = injectionPoint == .response ? "split_body" : "close"
    return try rule("at: \(injectionPoint.rawValue), when: {\(fields)}, do: {\(action): {}}").condition
  }

  static func trigger(_ fields: String) throws -> Trigger { try rule("trigger: {\(fields)}, do: {close: {}}").trigger }

  static func action(_ fields: String, at injectionPoint: InjectionPoint = .request) throws -> Action {
    try rule("at: \(injectionPoint.rawValue), do: {\(fields)}").action
  }

  /// Returns what `write` writes, as JSON text.
  static func json(_ write: (inout JSONWriter) -> Void) -> String {
    var writer = JSONWriter()
    write(&writer)
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}
