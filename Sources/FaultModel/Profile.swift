package import APNSMockRules

/// A fault profile, ready to run: merged with its base profiles and with the values of its parameters substituted.
package struct Profile: Sendable, Equatable {
  /// The profile's name.
  package var name: String
  /// A summary in one sentence.
  package var summary: String
  /// The parameters with their current values: those of the file in order, then those of base profiles.
  package var parameters: [Parameter]
  /// The seed that the file specifies.
  package var seed: UInt64?
  /// APNs settings that the profile overrides, as written in the file.
  package var settings: [APNSSetting: String]
  /// Limits on the resources of all rules together.
  package var limits: Limits
  /// The time from activation to automatic deactivation; nil for no limit.
  package var stopAfter: Duration?
  /// Whether two attempts are the same push by their content or by their `apns-id`.
  package var pushIdentity: PushIdentity
  /// The rules in evaluation order.
  package var rules: [Rule]

  /// Creates a profile.
  package init(
    name: String, summary: String = "", parameters: [Parameter] = [], seed: UInt64? = nil,
    settings: [APNSSetting: String] = [:], limits: Limits = Limits(), stopAfter: Duration? = nil,
    pushIdentity: PushIdentity = .content, rules: [Rule] = []
  ) {
    self.name = name
    self.summary = summary
    self.parameters = parameters
    self.seed = seed
    self.settings = settings
    self.limits = limits
    self.stopAfter = stopAfter
    self.pushIdentity = pushIdentity
    self.rules = rules
  }

  /// What makes two attempts the same push.
  package enum PushIdentity: String, CaseIterable, Sendable {
    /// Device token, topic, push type, collapse ID and payload.
    case content
    /// The `apns-id` that the client sent; the content if it sent none.
    case apnsID = "apns_id"
  }

  /// Limits on the resources that all rules of a profile use together.
  package struct Limits: Sendable, Equatable {
    /// The maximum number of pushes delayed at once; a further push is answered as APNs would.
    package var maxActive: Int
    /// The maximum time for which a push or connection is delayed.
    package var maxDelay: Duration

    /// Creates limits; the defaults are far above what a test needs.
    package init(maxActive: Int = 100_000, maxDelay: Duration = .seconds(600)) {
      self.maxActive = maxActive
      self.maxDelay = maxDelay
    }
  }

  /// A parameter of a profile.
  package struct Parameter: Sendable, Equatable {
    /// The type of a parameter's values.
    package enum Kind: String, CaseIterable, Sendable {
      case int, probability, duration, string, bool
    }

    /// The name, used as `${name}` in the file.
    package var name: String
    /// The type of its values.
    package var kind: Kind
    /// The default value as written in the file.
    package var defaultValue: String
    /// The current value as written.
    package var value: String
    /// The minimum as written; nil for none.
    package var minimum: String?
    /// The maximum as written; nil for none.
    package var maximum: String?
    /// A description for users.
    package var help: String

    /// Creates a parameter; its value is the default unless `value` is given.
    package init(
      name: String, kind: Kind, defaultValue: String, value: String? = nil, minimum: String? = nil,
      maximum: String? = nil, help: String = ""
    ) {
      self.name = name
      self.kind = kind
      self.defaultValue = defaultValue
      self.value = value ?? defaultValue
      self.minimum = minimum
      self.maximum = maximum
      self.help = help
    }
  }
}
