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
    case .name: "The profile's name. Default: the file name without its extension."
    case .summary: "A description in one sentence."
    case .extends: "Profiles to inherit from: their rules follow these; settings and parameters here override theirs."
    case .seed: "The seed of all draws. Default: the server's seed."
    case .params: "Parameters. A value \"${name}\" anywhere below is replaced by the parameter's value."
    case .apns: "Settings of the server that this profile overrides."
    case .limits: "Limits on all rules together."
    case .stop: "Automatic deactivation."
    case .pushKey: "What identifies attempts of the same push: the content or the apns-id. Default: content."
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
    case .type: "The type of the value."
    case .defaultValue: "The default value."
    case .min: "The minimum of an int, probability or duration."
    case .max: "The maximum of an int, probability or duration."
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
    case .maxActive: "The maximum number of pushes delayed at the same time. Default: 100000."
    case .maxHold: "The maximum delay of a push or connection. Default: 600s."
    }
  }
}

/// The field of `stop`.
enum StopKey: String, FileKey {
  case after

  static let schemaName = "stop"
  static let required = [after]

  var shape: ValueSyntax { .duration }

  var about: String { "The time after activation." }
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
    case .name: "The rule's name. Default: rule- and its number."
    case .at: "The injection point. Default: request."
    case .when: "The traffic that the rule applies to. Default: all."
    case .trigger: "How often the rule fires. Default: always."
    case .action: "The action."
    case .then: "Whether later rules are evaluated after this one fired. Default: depends on the action."
    case .stage: "Whether the rule applies only to pushes that APNs would accept, or to all. Default: after_validation."
    case .ttl: "How long the rule stays active; only for added rules, not in files."
    }
  }
}

/// The values of `then`.
enum Continuation: String, CaseIterable {
  case continueEvaluation = "continue"
  case stop
}
