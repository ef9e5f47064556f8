/// What APNs did with a push. Sealed when the header fields of the response are given to the connection.
package enum Decision: String, CaseIterable, Sendable {
  /// APNs accepted the push, whatever the client learned of it.
  case accepted
  /// APNs rejected the push with a status.
  case rejected
  /// The push was not processed.
  case notProcessed = "not_processed"
  /// The push is delayed, and APNs has not decided yet.
  case pending
  /// The push was forwarded to upstream and no answer came, or a record of an older format does not say it.
  case unknown
}

/// What the client's HTTP/2 stack received about an attempt. Of several that apply, the first one counts, and nothing that
/// happens later changes it.
package enum Ending: String, CaseIterable, Sendable {
  /// A complete response was written, with END_STREAM.
  case response
  /// RST_STREAM with REFUSED_STREAM was written, or a GOAWAY whose last stream is below this one.
  case refused
  /// The request is malformed (RFC 9113, section 8.1.1).
  case malformed
  /// RST_STREAM with another code was written.
  case reset
  /// The client reset the stream.
  case cancelled
  /// The request never became complete.
  case incomplete
  /// The connection ended, and nothing else was said.
  case disconnected
  /// The attempt has not ended.
  case pending
  /// A record of an older format does not say it.
  case unknown

  /// Whether the server certainly did not process the push.
  var excludesProcessing: Bool { self == .refused || self == .incomplete || self == .malformed }
}

extension Record {
  /// How an attempt ended, in one word that follows from its decision and its ending.
  package enum Outcome: String, CaseIterable, Sendable {
    /// APNs accepted the push, and the client has the response.
    case accepted
    /// APNs rejected the push, and the client has the response.
    case rejected
    /// APNs decided, and the client has no complete response.
    case responseLost = "response_lost"
    /// The push was not processed, and the client cannot know it.
    case unanswered
    /// The push was not processed, and the client knows it: it may send the push again at once.
    case unprocessed
    /// The request never became complete.
    case incomplete
    /// The request is malformed.
    case malformed
    /// The attempt has not ended.
    case pending
    /// The push was forwarded to upstream and no answer came, or a record of an older format does not say it.
    case unknown

    /// Creates the outcome of an attempt.
    ///
    /// - Parameter isIdleTimeout: Whether the response is 400 `IdleTimeout`, which is equivalent to a GOAWAY.
    package init(_ decision: Decision, _ ending: Ending, isIdleTimeout: Bool = false) {
      switch (decision, ending) {
      case (.accepted, .response): self = .accepted
      case (_, .pending), (.pending, _): self = .pending
      case (.notProcessed, .incomplete): self = .incomplete
      case (.notProcessed, .malformed): self = .malformed
      case (.notProcessed, .refused): self = .unprocessed
      case (_, .unknown), (.unknown, _): self = .unknown
      case (.rejected, .response) where isIdleTimeout: self = .unprocessed
      case (.rejected, .response): self = .rejected
      case (.notProcessed, .reset), (.notProcessed, .disconnected), (.notProcessed, .cancelled): self = .unanswered
      case (.accepted, .reset), (.accepted, .disconnected), (.accepted, .cancelled),
        (.rejected, .reset), (.rejected, .disconnected), (.rejected, .cancelled):
        self = .responseLost
      // Pairs that `AttemptEnd` excludes.
      case (.notProcessed, .response), (.accepted, .refused), (.accepted, .incomplete), (.accepted, .malformed),
        (.rejected, .refused), (.rejected, .incomplete), (.rejected, .malformed):
        self = .unknown
      }
    }
  }
}

/// The decision and the ending of an attempt, of which each pair is possible.
package struct AttemptEnd: Sendable, Equatable {
  /// What APNs did with the push.
  package let decision: Decision
  /// How the attempt ended for the client.
  package let ending: Ending

  /// Creates a pair. An ending that excludes processing determines the decision; a pair that cannot be becomes one that can,
  /// with the ending kept: an attempt that has ended has no pending decision, and a complete response has one.
  package init(_ decision: Decision, _ ending: Ending) {
    self.ending = ending
    if ending.excludesProcessing {
      self.decision = .notProcessed
    } else if decision == .pending, ending != .pending {
      self.decision = ending == .response ? .rejected : .notProcessed
    } else if decision == .notProcessed, ending == .response {
      self.decision = .rejected
    } else {
      self.decision = decision
    }
  }

  /// Whether a pair is possible.
  package static func isPossible(_ decision: Decision, _ ending: Ending) -> Bool {
    AttemptEnd(decision, ending).decision == decision
  }

  /// An attempt that has neither a decision nor an ending.
  package static let pending = AttemptEnd(.pending, .pending)
}
