internal import APNSMockNotation

extension Finding {
  /// The kinds of findings; the raw values are their names in records, filters and commands.
  package enum Kind: String, CaseIterable, Comparable, Sendable {
    /// The same push was sent again after a permanent error.
    case retriedPermanent = "retried-permanent"
    /// A push was sent to a device token after a 410 response.
    case retried410 = "retried-410"
    /// The same push was sent again at once after a temporary error, or before its `retry-after` had passed.
    case hotRetry = "hot-retry"
    /// The delays between a push's attempts do not grow.
    case noBackoff = "no-backoff"
    /// A push was given up although its last attempt could be retried.
    case abandoned
    /// A new provider token was used too soon after the previous one.
    case jwtChurn = "jwt-churn"
    /// A provider token was still used after an `ExpiredProviderToken` response.
    case jwtStale = "jwt-stale"
    /// Live connections of one team use different provider tokens.
    case tokenPerProcess = "token-per-process"
    /// A stream above the last stream of a GOAWAY was opened well after the GOAWAY.
    case afterGoAway = "after-goaway"
    /// More streams were open than MAX_CONCURRENT_STREAMS allows.
    case excessStreams = "excess-streams"
    /// A connection ended with responses that its flow-control window held back.
    case windowNeverOpened = "window-never-opened"
    /// A connection was opened for each push.
    case connectionChurn = "connection-churn"
    /// A push was accepted twice under two IDs, because the first response did not arrive.
    case duplicate
    /// A push was sent again although it was accepted and the client had read the response.
    case blindResend = "blind-resend"
    /// A request violates HTTP's rules for messages, so that its stream was reset.
    case malformedRequest = "malformed-request"
    /// A push was sent to a server whose certificate is not valid.
    case trustedAnything = "trusted-anything"
    /// A payload is close to the size limit.
    case nearLimit = "near-limit"
    /// APNs accepts the push and the device drops it.
    case wouldNotShow = "would-not-show"
    /// A push has no `apns-push-type`.
    case missingPushType = "missing-push-type"
    /// A nonzero `apns-expiration` lies in the past.
    case pastExpiration = "past-expiration"
    /// An `apns-expiration` counts milliseconds or smaller units, so that it lies thousands of years ahead.
    case expirationInMilliseconds = "expiration-in-milliseconds"
    /// A push to an offline device was not stored, because of its `apns-expiration`.
    case notStored = "not-stored"
    /// A stored push was replaced by a newer one before the device was online again.
    case overwrittenInStorage = "overwritten-in-storage"
    /// A push was replaced by a newer one before the device had acknowledged it.
    case overwrittenBeforeAck = "overwritten-before-ack"
    /// A device held or dropped a push that exceeds its budget.
    case backgroundBudget = "background-budget"
    /// A channel request is not written as Apple documents it, and is accepted nevertheless.
    case channelRequestForm = "channel-request-form"
    /// A broadcast was rejected because it has no `apns-expiration`.
    case broadcastWithoutExpiration = "broadcast-without-expiration"
    /// A provider token has an algorithm other than the documented ES256.
    case jwtAlgorithm = "jwt-alg"
    /// A push has a provider token that is ignored, because its connection has a client certificate.
    case ignoredToken = "ignored-token"
    /// A name or value resembles one that the server knows, and was probably meant as that.
    case probableMistake = "probable-mistake"
    /// A push was sent over HTTP/1.1, which only a cleartext listener accepts.
    case notHTTP2 = "not-http2"

    /// Returns what to write instead of a name that no kind has.
    ///
    /// - Parameter all: The value that selects all kinds, such as `true`.
    package static func hint(forUnknown name: String, all: String) -> String {
      if name == "all" { return "A list has names only. For all findings, use \(all) instead of the list." }
      let names = allCases.map(\.rawValue)
      return
        "\(Spelling.suggestion(for: name, among: names))Use \(all), or a list of \(Spelling.choices(for: name, among: names))."
    }

    /// Orders kinds as they are listed.
    package static func < (one: Kind, other: Kind) -> Bool { one.index < other.index }

    private var index: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    /// The meaning of the finding, in one sentence.
    package var summary: String { text.summary }
    /// Advice for the provider, in one sentence.
    package var advice: String { text.advice }

    /// Whether the finding is about when or how a push was retried.
    var concernsRetries: Bool {
      switch self {
      case .retriedPermanent, .hotRetry, .noBackoff: true
      default: false
      }
    }

    private var text: (summary: String, advice: String) {
      switch self {
      case .retriedPermanent:
        (
          "A push was retried unchanged after a permanent rejection.",
          "Retry only 429 and 5xx; after any other 4xx fix the cause that the reason names, or discard the push."
        )
      case .retried410:
        (
          "A push was sent to a device token after a 410 response.",
          "Delete the device token on 410, and use it again only after the app has registered again."
        )
      case .hotRetry:
        (
          "A push was retried immediately after APNs reported that it cannot accept it now.",
          "Wait before a retry: at least as long as retry-after says, otherwise about one second, then longer each time."
        )
      case .noBackoff:
        (
          "The time between the attempts of a push does not grow.",
          "Double the delay with each attempt, add jitter, and limit the total time."
        )
      case .abandoned:
        (
          "A push was not retried although its last attempt was retryable.",
          "Retry after 429, 5xx, a reset, GOAWAY or a lost connection until APNs accepts the push or rejects it permanently."
        )
      case .jwtChurn:
        (
          "Provider tokens are generated more often than every 20 minutes, which APNs rejects with "
            + "429 TooManyProviderTokenUpdates.",
          "Generate one provider token, share it between all connections and threads, and renew it every 20 to 60 minutes."
        )
      case .jwtStale:
        (
          "A provider token was still used after APNs had rejected it as expired.",
          "Renew the provider token before it is one hour old, and immediately after 403 ExpiredProviderToken."
        )
      case .tokenPerProcess:
        (
          "Connections of one team use different provider tokens at the same time.",
          "Share one provider token between all processes and connections: APNs limits how often the token of a team changes."
        )
      case .afterGoAway:
        (
          "A stream was opened after GOAWAY: it gets no response.",
          "Handle GOAWAY: open no further streams, and retry unprocessed pushes on a new connection."
        )
      case .excessStreams:
        (
          "More streams were open at once than MAX_CONCURRENT_STREAMS allows.",
          "Apply all SETTINGS frames, and queue pushes while the maximum number of streams is open."
        )
      case .windowNeverOpened:
        (
          "The connection ended with responses that waited for a larger HTTP/2 flow-control window.",
          "Send WINDOW_UPDATE for the received DATA of responses: only errors have a body, so the window of the connection "
            + "fills up slowly."
        )
      case .connectionChurn:
        (
          "Each push uses its own connection, which APNs treats as a denial-of-service attack.",
          "Keep one connection open, for hours or days, and send all pushes on it."
        )
      case .duplicate:
        (
          "APNs accepted the same push twice with different ids, because the first response did not arrive.",
          "Generate the apns-id yourself and reuse it for all attempts of a push."
        )
      case .blindResend:
        (
          "A push was sent again although APNs had accepted it and the client had read the response.",
          "Send a push again only if its own attempt failed: keep the result of each push when a connection breaks."
        )
      case .malformedRequest:
        (
          "A request is malformed (RFC 9113, section 8.1.1), so its stream was reset and the push was not processed.",
          "Correct what the violation names before sending the push again: the same request is reset each time."
        )
      case .trustedAnything:
        (
          "A push was sent although the server's certificate was not valid: the client does not verify servers.",
          "Verify the certificate chain and the host name: otherwise anybody on the network can read pushes and provider tokens."
        )
      case .nearLimit:
        (
          "The payload has 90 % or more of the maximum size.",
          "Shorten variable parts such as names and texts, before a longer one causes 413 PayloadTooLarge."
        )
      case .wouldNotShow:
        (
          "APNs accepts the push and the device drops it.",
          "Fix the problem in the explanation: APNs does not report it."
        )
      case .missingPushType:
        (
          "The push has no apns-push-type, which watchOS demands and silent pushes need.",
          "Set apns-push-type to what the payload is: alert, background, voip, liveactivity and so on."
        )
      case .pastExpiration:
        (
          "The apns-expiration lies in the past: APNs tries to deliver the push once and does not store it.",
          "Send the UNIX time in seconds at which the push expires, such as now plus 3600; or 0, if it must not be stored."
        )
      case .expirationInMilliseconds:
        (
          "The apns-expiration counts milliseconds or smaller units, so that the push expires in thousands of years.",
          "Send the UNIX time in whole seconds: divide milliseconds by 1000."
        )
      case .notStored:
        (
          "The device was offline, and the push was discarded because its apns-expiration does not allow storage.",
          "Send an apns-expiration in the future for pushes that matter when the device is online again."
        )
      case .overwrittenInStorage:
        (
          "The push was stored for a device and replaced by a newer one: APNs stores one push for each device and app.",
          "Do not rely on the delivery of each push: let the app fetch what it missed from your server."
        )
      case .overwrittenBeforeAck:
        (
          "The push was replaced by a newer one before the device had acknowledged it: APNs queues one push for each device.",
          "Combine pushes to one device, or send them apart, and let the app fetch what it missed from your server."
        )
      case .backgroundBudget:
        (
          "The device held back or dropped the push, because there are more than its budget allows.",
          "Send no more than two or three background pushes per hour to a device, and Live Activity updates with priority 5 "
            + "unless they are urgent."
        )
      case .channelRequestForm:
        (
          "A channel or broadcast request is not written as Apple documents it, and was accepted.",
          "Write message-storage-policy as the number 0 or 1, push-type as LiveActivity, and apns-push-type as liveactivity."
        )
      case .broadcastWithoutExpiration:
        (
          "A broadcast without apns-expiration was rejected with 400 BadExpirationDate.",
          "Always send apns-expiration with a broadcast; some clients omit it by default. Send 0 if the channel stores nothing."
        )
      case .jwtAlgorithm:
        (
          "The provider token is signed with ES512 over a P-256 key; Apple documents ES256 only.",
          "Sign the provider token with ES256: SHA-256, r and s of 32 bytes each."
        )
      case .ignoredToken:
        (
          "The provider token of the push is ignored, because its connection has a client certificate.",
          "Use one credential: omit the client certificate to push with the provider token, or omit authorization."
        )
      case .probableMistake:
        (
          "A device token, a topic, a header field or a member of the payload was probably meant as another one.",
          "Compare the value in the explanation with what the server knows: APNs reports no such mistake."
        )
      case .notHTTP2:
        (
          "The push arrived over HTTP/1.1; APNs accepts HTTP/2 only.",
          "Use an HTTP client that supports HTTP/2, and enable it: without TLS, with prior knowledge."
        )
      }
    }
  }
}

/// An error of the provider, with the records that prove it. Findings never change a response.
package struct Finding: Sendable, Equatable {
  /// The kind of error.
  package let kind: Kind
  /// The `seq`, on its server, of the record that the finding is about: the retry, not the attempt before it.
  package let seq: Int
  /// The `seq` of each record that proves the finding, ascending, including `seq`. Some may have been evicted.
  package let evidence: [Int]
  /// A description of what happened, with values from these records.
  package let explanation: String
  /// The server that received the push, in a view of several servers; otherwise nil.
  let origin: RecordOrigin?

  /// Creates a finding on a record, which follows from it and from others of its server.
  init(_ kind: Kind, on record: borrowing Record, with others: [Int] = [], explanation: String) {
    self.kind = kind
    seq = record.serverSeq
    evidence = (others + [seq]).sorted()
    origin = record.origin
    self.explanation = explanation
  }

  /// The record as users name it.
  package var name: PushName { name(of: seq) }

  /// Returns a record of the evidence as users name it.
  func name(of seq: Int) -> PushName {
    origin.map { .ofServer(RecordOrigin(server: $0.server, seq: seq)) } ?? .seq(seq)
  }
}

/// The thresholds of findings, with their rationale.
enum FindingThreshold {
  /// A retry within this many nanoseconds of the failure counts as immediate. Apple asks for 15 minutes after a 5xx
  /// (Protocol.md, section 7.2). Test setups shorten that, but no back-off begins with less than a tenth of a
  /// second.
  static let instant: Int64 = 100_000_000
  /// The time, in nanoseconds, that a client with several pushes in flight needs to process a response: a push that
  /// arrives within it after a response to another push may have been sent before the client read the response.
  static let reaction: Int64 = 100_000_000
  /// The nanoseconds after the server has ended a connection within which a push that is sent again belongs to a batch that
  /// is repeated as a whole.
  static let batchRepetition: Int64 = 60_000_000_000
  /// The nanoseconds after a renewal in which connections may finish with the former provider token.
  static let renewal: Int64 = 60_000_000_000
  /// Delays that differ by at most a tenth count as equal: a machine under load does not wait to the millisecond.
  static let sameDelay = 1.1
  /// A delay has grown if it is a quarter longer than the first one: linear back-off and jitter pass.
  static let grownDelay = 1.25
  /// With at least this many delays, all must have grown. Two delays are only compared with each other, because one
  /// short delay by jitter proves nothing.
  static let manyDelays = 3
  /// The number of connections with a single push each that count as connection churn.
  static let churnConnections = 5
  /// The nanoseconds within which these connections must be opened: one minute. APNs publishes no number
  /// (Protocol.md, section 1.4).
  static let churnTime: Int64 = 60_000_000_000
  /// The percentage of the size limit from which a payload is likely to exceed it with a longer text.
  static let nearLimitPercent = 90
  /// The nanoseconds after which the same push counts as a new one, the same as for attempt counts.
  static let retryWindow = AttemptCounter.retryWindow
}
