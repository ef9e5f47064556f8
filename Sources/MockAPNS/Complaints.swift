import NIOConcurrencyHelpers
import NIOCore

/// Limits how often client errors are logged: a number of times a minute for each host and each kind of error,
/// because a client that reconnects in a loop would flood the log.
final class Complaints: Sendable {
  /// The kinds of client errors that are counted separately.
  enum Kind {
    /// The TLS handshake fails or does not complete in time.
    case handshake
    /// The connection does not begin with TLS and HTTP/2.
    case beginning
    /// The client violates HTTP/2, or floods the server.
    case protocolError
    /// The client does not complete its requests, or does not read its responses.
    case slowness
    /// The client violates the APNs rules for connections.
    case rules
  }

  /// Whether an error is logged.
  enum Loudness {
    case told
    /// Logged, with a note that further ones are suppressed for a while.
    case toldLast
    case untold
  }

  /// The number of errors logged per minute, host and kind.
  static let limit = 100
  private static let minute = TimeAmount.minutes(1)
  private static let hostLimit = 1024

  private struct Key: Hashable {
    let host: String
    let kind: Kind
  }

  private let told = NIOLockedValueBox<[Key: (since: NIODeadline, count: Int)]>([:])

  /// The number of tracked pairs of host and kind.
  var count: Int { told.withLockedValue { $0.count } }

  /// Counts an error and returns whether to log it.
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
