/// Something that happened besides pushes, as event streams tell it.
public struct EventNote: Sendable {
  /// What kind of thing happened: the name of its event.
  public enum Kind: String, Sendable {
    /// Something on a provider's connection.
    case connection
    /// A rule beside the profile came or went.
    case rule
    /// Another profile is in force, or with other knobs, or faults were halted or go on.
    case profile
    /// Something was set back to its beginning.
    case reset
  }

  /// What kind of thing.
  public let kind: Kind
  /// What there is to tell: a JSON object in one line.
  let json: [UInt8]
}
