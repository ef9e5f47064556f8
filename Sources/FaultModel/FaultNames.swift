/// The names of profiles and of their rules, and the reasons their rules respond with.
package struct FaultNames: Sendable, Equatable {
  /// Names of profiles.
  package private(set) var profiles: Set<String> = []
  /// Names of rules.
  package var rules: Set<String> = []
  /// Reasons in responses, including those that APNs does not have.
  package private(set) var reasons: Set<String> = []

  /// The maximum number of names of one kind. Further names are left out, because clients can add any number of
  /// rules.
  private static let limit = 10_000

  /// Creates an empty set of names.
  package init() {}

  /// Adds the names of a profile and its rules.
  package mutating func add(_ profile: Profile) {
    if profiles.count < Self.limit { profiles.insert(profile.name) }
    for rule in profile.rules { add(rule) }
  }

  /// Adds the name of a rule and the reasons of its responses.
  package mutating func add(_ rule: Rule) {
    if rules.count < Self.limit { rules.insert(rule.name) }
    if reasons.count < Self.limit { reasons.formUnion(rule.action.reasons) }
  }
}

extension Action {
  /// The reasons of the action's responses.
  fileprivate var reasons: [String] {
    switch self {
    case .respond(let answer), .respondThenShutDown(_, let answer): [answer.reason].compactMap(\.self)
    case .choose(let choices): choices.flatMap(\.action.reasons)
    case .sequence(_, let steps, _): steps.flatMap(\.reasons)
    default: []
    }
  }
}
