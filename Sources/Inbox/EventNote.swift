/// An event other than a push, for event streams.
public struct EventNote: Sendable {
  /// The kind of an event; the raw value is the event's name.
  public enum Kind: String, Sendable {
    /// An event on a provider's connection.
    case connection
    /// A rule outside of the profile was added or removed.
    case rule
    /// The active profile or its parameters changed, or fault injection was paused or resumed.
    case profile
    /// Something was reset.
    case reset
  }

  /// The kind of the event.
  public let kind: Kind
  /// The event's data: a JSON object on one line.
  let json: [UInt8]
}
