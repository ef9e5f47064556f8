import NIOConcurrencyHelpers
import NIOCore

/// How often the log tells of clients that do wrong: a number of times a minute of each host, and of each kind of wrong. One
/// that connects again and again would fill it otherwise.
final class Complaints: Sendable {
  /// What a client does wrong, as far as complaints are counted apart.
  enum Kind {
    /// It does not come to the end of its TLS handshake.
    case handshake
    /// It does not begin with TLS and HTTP/2.
    case beginning
    /// It breaks the rules of HTTP/2, or bears on the server.
    case protocolError
    /// It does not come to the end of its requests, or does not take its answers.
    case slowness
    /// It breaks the rules of APNs for connections.
    case rules
  }

  /// Whether the log tells.
  enum Loudness {
    case told
    /// It is told, and that it was the last time for a while.
    case toldLast
    case untold
  }

  /// So often in a minute.
  static let limit = 100
  private static let minute = TimeAmount.minutes(1)
  private static let hostLimit = 1024

  private struct Key: Hashable {
    let host: String
    let kind: Kind
  }

  private let told = NIOLockedValueBox<[Key: (since: NIODeadline, count: Int)]>([:])

  /// How many hosts and kinds are known.
  var count: Int { told.withLockedValue { $0.count } }

  /// Counts a complaint.
  func add(_ kind: Kind, of host: String, at now: NIODeadline = .now()) -> Loudness {
    let key = Key(host: host, kind: kind)
    return told.withLockedValue { told in
      var entry = told[key] ?? (now, 0)
      if now - entry.since >= Self.minute { entry = (now, 0) }
      entry.count += 1
      if told.count >= Self.hostLimit, told[key] == nil { told.removeAll() }
      told[key] = entry
      return entry.count < Self.limit ? .told : entry.count == Self.limit ? .toldLast : .untold
    }
  }
}
