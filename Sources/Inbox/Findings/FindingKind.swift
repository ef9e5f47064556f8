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
          "A push was sent again unchanged after an answer that no repetition changes.",
          "Retry 429 and 5xx alone; after any other 4xx mend what the reason names, or give the push up."
        )
      case .retried410:
        (
          "A push went to a device token that APNs had answered 410 for.",
          "Delete the device token when a 410 comes, and use it again only after the app has registered anew."
        )
      case .hotRetry:
        (
          "A push was sent again at once after APNs said that it cannot take it now.",
          "Wait before a retry: at least as long as retry-after says, otherwise about a second at first and longer each time."
        )
      case .noBackoff:
        (
          "The time between the attempts of a push does not grow.",
          "Double the delay with each attempt, add some jitter, and give up at some time."
        )
      case .abandoned:
        (
          "A push was given up although its last attempt could be retried.",
          "Retry after 429, 5xx, a reset, GOAWAY or a lost connection until APNs accepts the push or rejects it for good."
        )
      case .jwtChurn:
        (
          "Provider tokens are made more often than every 20 minutes, which APNs answers with "
            + "429 TooManyProviderTokenUpdates.",
          "Make one provider token, share it between all connections and threads, and renew it every 20 to 60 minutes."
        )
      case .jwtStale:
        (
          "A provider token was used on after APNs had said that it has expired.",
          "Renew the provider token before it is an hour old, and at once when the answer is 403 ExpiredProviderToken."
        )
      case .afterGoAway:
        (
          "A stream was opened on a connection whose GOAWAY had left it out: it is lost without an answer.",
          "Listen for GOAWAY, open no stream after it, and send what it left out on a new connection."
        )
      case .excessStreams:
        (
          "More streams were open at once than MAX_CONCURRENT_STREAMS allows.",
          "Read SETTINGS while the connection lives, and let pushes wait while as many streams are open as it says."
        )
      case .connectionChurn:
        (
          "Each push has a connection of its own, which APNs takes for a denial of service.",
          "Keep one connection open, for hours or days, and send all pushes on it."
        )
      case .duplicate:
        (
          "APNs took the same push twice under two ids, because the first answer did not arrive.",
          "Choose the apns-id yourself and keep it for every attempt of a push."
        )
      case .nearLimit:
        (
          "The payload has 90 % or more of the bytes that it may have.",
          "Shorten what varies, such as names and texts, before a longer one makes it 413 PayloadTooLarge."
        )
      case .wouldNotShow:
        (
          "APNs accepts the push and the device drops it.",
          "Mend what the explanation names: APNs itself will never tell."
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
