import Logging
import NIOConcurrencyHelpers
import NIOCore

/// Limits how often client errors are logged: a number of times a minute for each host and each kind of error,
/// because a client that reconnects in a loop would flood the log.
final class ClientErrorLog: Sendable {
  /// The kinds of client errors that are counted separately.
  enum Kind {
    /// The TLS handshake fails or does not complete in time.
    case handshake
    /// The connection does not begin as its listener expects: with TLS and HTTP/2, a PROXY protocol header, CONNECT.
    case notHTTP2
    /// The client violates HTTP/2, or floods the server.
    case protocolError
    /// The client does not complete its requests, or does not read its responses.
    case slowness
    /// The client violates the APNs rules for connections.
    case rules
  }

  /// Whether an error is logged.
  enum LogDecision {
    case logged
    /// Logged, with the remark that further ones are suppressed for a while.
    case loggedLast
    case suppressed
  }

  /// The number of errors logged per minute, host and kind.
  static let limit = 100
  private static let minute = TimeAmount.minutes(1)
  private static let hostLimit = 1024

  private struct Key: Hashable {
    let host: String
    let kind: Kind
  }

  private let counts = NIOLockedValueBox<[Key: (since: NIODeadline, count: Int)]>([:])

  /// The number of tracked pairs of host and kind.
  var count: Int { counts.withLockedValue { $0.count } }

  /// Counts an error and returns whether to log it.
  func add(_ kind: Kind, of host: String, at now: NIODeadline = .now()) -> LogDecision {
    let key = Key(host: host, kind: kind)
    return counts.withLockedValue { counts in
      var entry = counts[key] ?? (now, 0)
      if now - entry.since >= Self.minute { entry = (now, 0) }
      entry.count += 1
      if counts.count >= Self.hostLimit, counts[key] == nil { counts.removeAll() }
      counts[key] = entry
      return entry.count < Self.limit ? .logged : entry.count == Self.limit ? .loggedLast : .suppressed
    }
  }

  /// Counts an error and logs it: at the level debug if the client's errors recur.
  func log(_ kind: Kind, _ message: String, of connection: ConnectionLog, to logger: Logger) {
    let (client, address) = (connection.client, connection.clientAddress)
    switch add(kind, of: address) {
    case .logged: logger.notice("\(client): \(message)")
    case .loggedLast:
      logger.notice(
        "\(client): \(message) (repeated; further messages about \(address) are logged at level debug for a while)")
    case .suppressed: logger.debug("\(client): \(message)")
    }
  }
}

/// Limits a log message to once a minute.
package struct LogThrottle: Sendable {
  private static let interval = TimeAmount.minutes(1)
  private var last: NIODeadline?

  /// Creates a limit under which the next message may be logged.
  package init() {}

  /// Returns whether the message may be logged now, and if so starts a new interval.
  package mutating func shouldLog() -> Bool {
    let now = NIODeadline.now()
    if let last, now - last < Self.interval { return false }
    last = now
    return true
  }
}

/// Returns advice for a failed TLS handshake or connection, selected by OpenSSL's reason; empty if
/// there is none.
func handshakeAdvice(for reason: String) -> String {
  for (text, advice) in advices where reason.contains(text) { return "; " + advice }
  return ""
}

private let advices = [
  ("unknown ca", "the client does not trust this server's CA: configure it to trust ca.pem of the certificate folder"),
  (
    "certificate unknown",
    "the client rejects this server's certificate: configure it to trust ca.pem of the certificate folder, and connect by a name in the certificate (--san adds one)"
  ),
  (
    "bad certificate",
    "the client rejects this server's certificate: configure it to trust ca.pem of the certificate folder, and connect by a name in the certificate (--san adds one)"
  ),
  (
    "alert decrypt error",
    "the client could not verify this server's signature in the handshake (alert 51): a proxy in between may send this server's certificate without its key"
  ),
  (
    "bad signature",
    "the client certificate and the private key that the client signs with do not belong together, so it was sent alert 51 (decrypt_error): configure the key of this certificate; openssl x509 -in CERT -noout -pubkey and openssl pkey -in KEY -pubout must print the same"
  ),
  ("certificate has expired", "create a new client certificate with apns-mock certs client"),
  (
    "self-signed certificate",
    "the client's certificate is issued by an unknown CA: trust its CA with --client-ca, or use client.pem"
  ),
  (
    "unable to get local issuer certificate",
    "the client's certificate is issued by an unknown CA: trust its CA with --client-ca, or use client.pem"
  ),
  ("unsupported protocol", "the client does not support TLS 1.2 or 1.3"),
  ("wrong version number", "the client does not use TLS"),
]
