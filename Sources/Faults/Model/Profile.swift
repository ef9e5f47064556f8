public import APNSRules

/// A fault profile, ready to run: its base profiles and its knobs are worked in.
public struct Profile: Sendable, Equatable {
  /// How it is called.
  public var name: String
  /// One sentence about it.
  public var summary: String
  /// Its knobs with the values they have now, in the order of the file, those of base profiles after.
  public var parameters: [Parameter]
  /// The seed the file asks for.
  public var seed: UInt64?
  /// Settings it overrides, as they are written.
  public var settings: [APNSSetting: String]
  /// What it may use up.
  public var limits: Limits
  /// How long after its activation it ends by itself; nil for never.
  public var stopAfter: Duration?
  /// Whether the same push is told by its content or by its `apns-id`.
  public var pushIdentity: PushIdentity
  /// The rules, in the order they are looked at.
  public var rules: [Rule]

  /// A profile.
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
    /// Device token, topic, push type, collapse id and payload.
    case content
    /// The `apns-id` the client gave; the content where it gave none.
    case apnsID = "apns_id"
  }

  /// What all rules of a profile may use up together.
  public struct Limits: Sendable, Equatable {
    /// How many pushes may be held at once; one more is answered as APNs would.
    public var maxActive: Int
    /// How long a push may be held.
    public var maxHold: Duration

    /// Limits; the defaults are far above what a test needs.
    public init(maxActive: Int = 100_000, maxHold: Duration = .seconds(600)) {
      self.maxActive = maxActive
      self.maxHold = maxHold
    }
  }

  /// A knob.
  public struct Parameter: Sendable, Equatable {
    /// What values it takes.
    public enum Kind: String, CaseIterable, Sendable {
      case int, probability, duration, string, bool
    }

    /// How it is called in `${name}`.
    public var name: String
    /// What values it takes.
    public var kind: Kind
    /// As it is written.
    public var defaultValue: String
    /// As it is written now.
    public var value: String
    /// The least value, as it is written; nil for none.
    public var minimum: String?
    /// The greatest value, as it is written; nil for none.
    public var maximum: String?
    /// What it turns, for people.
    public var help: String

    /// A knob that stands at its default unless `value` is given.
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
