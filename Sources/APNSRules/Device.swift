/// A device token registered with the server. All other device tokens are treated as online.
public struct Device: Sendable, Equatable {
  /// The state of a device token.
  public enum State: String, Sendable, CaseIterable {
    /// Pushes are accepted.
    case online
    /// The app was removed: 410 `Unregistered`.
    case unregistered
    /// The token has expired, as the token of a finished Live Activity: 410 `ExpiredToken`.
    case expired
  }

  /// The device token in lower-case hexadecimal.
  public let token: String
  /// The exact `apns-topic` the token belongs to; nil for any.
  public var topic: String?
  /// The environment the token belongs to; nil for any.
  public var environment: PushEnvironment?
  /// The current state.
  public var state: State
  /// When the state began, in milliseconds since 1970 of the server's clock: the `timestamp` of a 410.
  public var since: Int64

  /// Creates a device; the token is converted to lower case.
  public init(
    token: String, topic: String? = nil, environment: PushEnvironment? = nil, state: State = .online, since: Int64
  ) {
    self.token = token.lowercased()
    self.topic = topic
    self.environment = environment
    self.state = state
    self.since = since
  }
}

/// The syntax of device tokens.
public enum DeviceToken {
  /// Whether `bytes` are 2 to 400 hexadecimal digits of either case, an even number (Protocol.md, section 13, row
  /// 8: the length is not fixed; 64 to 160 digits were observed, 200 are announced).
  public static func isWellFormed(_ bytes: UnsafeRawBufferPointer) -> Bool {
    !bytes.isEmpty && bytes.count <= 400 && bytes.count.isMultiple(of: 2) && bytes.isHexadecimal
  }

  /// Whether `text` is a device token.
  public static func isWellFormed(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { isWellFormed(UnsafeRawBufferPointer($0)) }
  }

  /// The first four and last two digits, for logs and explanations.
  public static func abbreviated(_ text: String) -> String {
    text.utf8.count <= 8 ? text : "\(text.prefix(4))…\(text.suffix(2))"
  }
}
