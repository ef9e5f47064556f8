import FaultModel
internal import APNSRules

/// The top-level fields of a profile.
enum ProfileKey: String, FileKey {
  case name, summary, extends, seed, params, apns, limits, stop
  case pushKey = "push_key"
  case rules

  static let schemaName = "profile"

  var shape: ValueSyntax {
    switch self {
    case .name: .name
    case .summary: .text
    case .extends: .either(.name, .list(.name))
    case .seed: .whole(0...Int.max)
    case .params: .named(.map(ParameterKey.self))
    case .apns: .settings
    case .limits: .map(LimitsKey.self)
    case .stop: .map(StopKey.self)
    case .pushKey: .word(Profile.PushIdentity.allCases.map(\.rawValue))
    case .rules: .list(.map(RuleKey.self))
    }
  }

  var about: String {
    switch self {
    case .name: "What the profile is called; the file's name without its ending, if absent."
    case .summary: "One sentence about it."
    case .extends: "Profiles to inherit from: their rules follow these; settings and parameters here override theirs."
    case .seed: "What all draws depend on; random, and printed, if absent."
    case .params: "Parameters. A value \"${name}\" anywhere below is replaced by the parameter's value."
    case .apns: "Settings of the server that this profile overrides."
    case .limits: "What all rules together may use up."
    case .stop: "When the profile ends by itself."
    case .pushKey: "What identifies attempts of the same push: the content or the apns-id."
    case .rules: "The rules, evaluated from top to bottom."
    }
  }
}

/// The fields of a parameter.
enum ParameterKey: String, FileKey {
  case type
  case defaultValue = "default"
  case min, max, help

  static let schemaName = "parameter"

  var shape: ValueSyntax {
    switch self {
    case .type: .word(Profile.Parameter.Kind.allCases.map(\.rawValue))
    case .defaultValue, .min, .max: .scalar
    case .help: .text
    }
  }

  var about: String {
    switch self {
    case .type: "What kind of value it has."
    case .defaultValue: "The default value."
    case .min: "The least value it can have."
    case .max: "The largest value it can have."
    case .help: "A short description."
    }
  }
}

/// The fields of `limits`.
enum LimitsKey: String, FileKey {
  case maxActive = "max_active"
  case maxHold = "max_hold"

  static let schemaName = "limits"

  var shape: ValueSyntax {
    switch self {
    case .maxActive: .whole(1...Int.max)
    case .maxHold: .duration
    }
  }

  var about: String {
    switch self {
    case .maxActive: "The maximum number of delayed pushes."
    case .maxHold: "The maximum delay of a push."
    }
  }
}

/// The field of `stop`.
enum StopKey: String, FileKey {
  case after

  static let schemaName = "stop"
  static let required = [after]

  var shape: ValueSyntax { .duration }

  var about: String { "How long after its activation." }
}

/// The fields of a rule.
enum RuleKey: String, FileKey {
  case name, at, when, trigger
  case action = "do"
  case then, stage, ttl

  static let schemaName = "rule"
  static let required = [action]

  var shape: ValueSyntax {
    switch self {
    case .name: .name
    case .at: .word(InjectionPoint.allCases.map(\.rawValue))
    case .when: .map(ConditionKey.self)
    case .trigger: .map(TriggerKey.self)
    case .action: .action
    case .then: .word(Continuation.allCases.map(\.rawValue))
    case .stage: .word(Rule.Stage.allCases.map(\.rawValue))
    case .ttl: .duration
    }
  }

  var about: String {
    switch self {
    case .name: "What the rule is called; rule- and its number, if absent."
    case .at: "At which moment of the exchange; request, if absent."
    case .when: "For which traffic; for all, if absent."
    case .trigger: "How often; each time, if absent."
    case .action: "What is done."
    case .then: "Whether later rules are evaluated after this one has fired."
    case .stage: "Whether a push that APNs would reject meets it."
    case .ttl: "How long the rule stays active; only for added rules, not in files."
    }
  }
}

/// The values of `then`.
enum Continuation: String, CaseIterable {
  case continueEvaluation = "continue"
  case stop
}
