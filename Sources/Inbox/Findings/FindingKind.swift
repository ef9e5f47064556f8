extension Finding {
  /// The kinds of findings; the raw values are their names in records, filters and commands.
  public enum Kind: String, CaseIterable, Comparable, Sendable {
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
    /// A stream above the last stream of a GOAWAY was opened well after the GOAWAY.
    case afterGoAway = "after-goaway"
    /// More streams were open than MAX_CONCURRENT_STREAMS allows.
    case excessStreams = "excess-streams"
    /// A connection was opened for each push.
    case connectionChurn = "connection-churn"
    /// A push was accepted twice under two IDs, because the first response did not arrive.
    case duplicate
    /// A payload is close to the size limit.
    case nearLimit = "near-limit"
    /// APNs accepts the push and the device drops it.
    case wouldNotShow = "would-not-show"
    /// A push has no `apns-push-type`.
    case missingPushType = "missing-push-type"
    /// A provider token has an algorithm other than the documented ES256.
    case jwtAlgorithm = "jwt-alg"

    /// Orders kinds as they are listed.
    public static func < (one: Kind, other: Kind) -> Bool { one.place < other.place }

    private var place: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    /// The meaning of the finding, in one sentence.
    public var summary: String { text.summary }
    /// Advice for the provider, in one sentence.
    public var advice: String { text.advice }

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
      case .jwtAlgorithm:
        (
          "The provider token is signed with ES512 over a P-256 key; Apple documents ES256 only.",
          "Sign the provider token with ES256: SHA-256, r and s of 32 bytes each."
        )
      }
    }
  }
}
