/// What the registry knows about one device token. Tokens it does not know are online.
public struct Device: Sendable, Equatable {
  /// What became of the device token.
  public enum State: String, Sendable, CaseIterable {
    /// It takes pushes.
    case online
    /// The app is gone: 410 `Unregistered`.
    case unregistered
    /// The token's time is over, as with the token of a finished Live Activity: 410 `ExpiredToken`.
    case expired
  }

  /// The device token in lower-case hexadecimal.
  public let token: String
  /// The exact `apns-topic` it belongs to; `nil` for any.
  public var topic: String?
  /// The environment it belongs to; `nil` for any.
  public var environment: PushEnvironment?
  /// What became of it.
  public var state: State
  /// Since when, in milliseconds since 1970 of the server's clock: the `timestamp` of a 410.
  public var since: Int64

  /// A device; the token is put into lower case.
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

/// The form of device tokens.
public enum DeviceToken {
  /// Whether `bytes` are hexadecimal digits of any case, an even number, 1 to 400 of them (APNS.md section 13, row 8:
  /// the length is not fixed, 64 to 160 digits are seen, 200 are announced).
  public static func isWellFormed(_ bytes: UnsafeRawBufferPointer) -> Bool {
    !bytes.isEmpty && bytes.count <= 400 && bytes.count.isMultiple(of: 2) && bytes.isHexadecimal
  }

  /// The same for text.
  public static func isWellFormed(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { isWellFormed(UnsafeRawBufferPointer($0)) }
  }

  /// First four and last two digits, the form for logs and explanations.
  public static func abbreviated(_ text: String) -> String {
    text.utf8.count <= 8 ? text : "\(text.prefix(4))…\(text.suffix(2))"
  }
}
