public import APNSRules

/// A fault profile, ready to run: merged with its base profiles and with the values of its parameters substituted.
public struct Profile: Sendable, Equatable {
  /// The profile's name.
  public var name: String
  /// A summary in one sentence.
  public var summary: String
  /// The parameters with their current values: those of the file in order, then those of base profiles.
  public var parameters: [Parameter]
  /// The seed that the file specifies.
  public var seed: UInt64?
  /// APNs settings that the profile overrides, as written in the file.
  public var settings: [APNSSetting: String]
  /// Limits on the resources of all rules together.
  public var limits: Limits
  /// The time from activation to automatic deactivation; nil for no limit.
  public var stopAfter: Duration?
  /// Whether two attempts are the same push by their content or by their `apns-id`.
  public var pushIdentity: PushIdentity
  /// The rules in evaluation order.
  public var rules: [Rule]

  /// Creates a profile.
  public init(
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
  public enum PushIdentity: String, CaseIterable, Sendable {
    /// Device token, topic, push type, collapse ID and payload.
    case content
    /// The `apns-id` that the client sent; the content if it sent none.
    case apnsID = "apns_id"
  }

  /// Limits on the resources that all rules of a profile use together.
  public struct Limits: Sendable, Equatable {
    /// The maximum number of pushes held at once; a further push is answered as APNs would.
    public var maxActive: Int
    /// The maximum time a push or connection may be held.
    public var maxHold: Duration

    /// Creates limits; the defaults are far above what a test needs.
    public init(maxActive: Int = 100_000, maxHold: Duration = .seconds(600)) {
      self.maxActive = maxActive
      self.maxHold = maxHold
    }
  }

  /// A parameter of a profile.
  public struct Parameter: Sendable, Equatable {
    /// The type of a parameter's values.
    public enum Kind: String, CaseIterable, Sendable {
      case int, probability, duration, string, bool
    }

    /// The name, used as `${name}` in the file.
    public var name: String
    /// The type of its values.
    public var kind: Kind
    /// The default value as written in the file.
    public var defaultValue: String
    /// The current value as written.
    public var value: String
    /// The minimum as written; nil for none.
    public var minimum: String?
    /// The maximum as written; nil for none.
    public var maximum: String?
    /// A description for users.
    public var help: String

    /// Creates a parameter; its value is the default unless `value` is given.
    public init(
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
