internal import APNSMockRules
internal import APNSMockNotation

/// The evidence for a finding on a record that follows from other records, in compact form. The text is made on
/// demand.
struct FindingEvidence: Sendable {
  /// The facts that prove the finding.
  enum Proof: Sendable {
    /// The permanent error.
    case permanent(response: String)
    /// The 410 response, and the nanoseconds since then.
    case unregistered(response: String, after: Int64)
    /// The temporary error, the nanoseconds until the retry, and the seconds in `retry-after`.
    case earlyRetry(response: String, after: Int64, retryAfter: Int64?)
    /// The nanoseconds between the attempts.
    case constantDelays([Int64])
    /// The milliseconds since the previous token, and the minimum.
    case earlyToken(after: Int64, minimum: Int64)
    /// The token has the key ID and issue time of another JWT.
    case sameClaims
    /// Each of several connections used a token of its own.
    case tokenForEachConnection
    /// The nanoseconds since the `ExpiredProviderToken` response.
    case expired(after: Int64)
    /// The last stream of the GOAWAY, and the nanoseconds since then.
    case goAway(lastStream: Int32, after: Int64)
    /// The value of MAX_CONCURRENT_STREAMS.
    case excess(limit: UInt32)
    /// The number of responses that the connection's window held back.
    case windowExhausted(responses: Int)
    /// The nanoseconds from the first connection to the last.
    case connections(within: Int64)
    /// The push was accepted before.
    case acceptedTwice
    /// The push was sent again although the client had shown that it read the response of the accepted one.
    case resentAfterResponse
    /// Another connection of the team had begun to use another token, nanoseconds ago.
    case otherToken(after: Int64)
    /// The kind says what happened. The other push, if there is one, replaced this one on its way to the device.
    case kind
    /// The device ignored it because of its token, or of another push that it had received.
    case notShown(DisplayProblem)
    /// No further attempt followed within these milliseconds of the server's clock.
    case abandoned(after: Int64)
  }

  let kind: Finding.Kind
  /// The `seq` of each other record that proves the finding, ascending.
  let others: [Int]
  let proof: Proof

  init(_ kind: Finding.Kind, with others: [Int], _ proof: Proof) {
    self.kind = kind
    self.others = others
    self.proof = proof
  }

  /// Returns the finding on the record that the evidence belongs to.
  func finding(on record: borrowing Record) -> Finding {
    Finding(kind, on: record, with: others, explanation: explanation(record))
  }

  private func explanation(_ record: borrowing Record) -> String {
    let first = record.name(ofOther: others.first ?? record.serverSeq)
    switch proof {
    case .permanent(let response):
      return "push \(first) was answered \(response), and nothing relevant to this response has changed since"
    case .unregistered(let response, let after):
      return
        "APNs responded with \(response) for this device token and topic \(Self.time(after)) earlier, to push \(first)"
    case .earlyRetry(let response, let after, let retryAfter):
      let requirement = retryAfter.map { ", although retry-after requires \(DurationFormat.text(.seconds($0)))" } ?? ""
      return "retried \(Self.time(after)) after push \(first) was answered \(response)\(requirement)"
    case .constantDelays(let delays):
      let list = delays.map(Self.time).joined(separator: ", ")
      return "attempt \(others.count + 1) of this push, and the delays between the attempts do not grow: \(list)"
    case .earlyToken(let after, let minimum):
      return
        "another provider token on this connection \(Self.time(after &* 1_000_000)) after push \(first) had sent the "
        + "previous one; the minimum is \(DurationFormat.text(.milliseconds(minimum)))"
    case .sameClaims:
      return "another JWT with the kid and iat of the one in push \(first): tokens are generated repeatedly instead of "
        + "being reused"
    case .tokenForEachConnection:
      return "\(others.count + 1) consecutive connections each sent one push with a new provider token"
    case .expired(let after):
      return "the provider token that was answered 403 ExpiredProviderToken in push \(first) was used again "
        + "\(Self.time(after)) later"
    case .goAway(let lastStream, let after):
      return
        "stream \(record.stream) was opened \(Self.time(after)) after a GOAWAY with last stream \(lastStream): "
        + "it gets no response"
    case .excess(let limit):
      return
        "stream \(record.stream) was one more than the \(limit) open at once that MAX_CONCURRENT_STREAMS allows and the "
        + "client had acknowledged"
    case .windowExhausted(let responses):
      return
        "the last push of connection \(record.connection.id), which ended with \(responses) responses or parts of them "
        + "unsent: the client had received as much DATA as its flow-control window allowed, and sent no WINDOW_UPDATE for it"
    case .connections(let within):
      let host = record.connection.clientHost
      return "the \(others.count + 1)th connection within \(Self.time(within)) that \(host) closed after one push"
    case .acceptedTwice:
      return
        "APNs had accepted this push as push \(first), and the client may not know that; with another apns-id it is a "
        + "second notification"
    case .resentAfterResponse:
      return
        "APNs had accepted this push as push \(first), and the client had shown that it read the response before it sent "
        + "the push again"
    case .otherToken(let after):
      return
        "connection \(record.connection.id) still uses its provider token \(Self.time(after)) after push \(first) used "
        + "another one of the same team on another connection"
    case .kind: return kindExplanation(record)
    case .notShown(let problem): return problem.text + (others.isEmpty ? "" : " (push \(first))")
    case .abandoned(let after):
      let end =
        record.end.ending == .response
        ? "was answered \(record.responseText)" : "got no response (\(record.outcome.rawValue))"
      // At the end of a test, no time has to pass.
      let period = after > 0 ? " within \(DurationFormat.text(.milliseconds(after)))" : ""
      return "attempt \(record.attempt) \(end), and no further attempt followed\(period)"
    }
  }

  private func kindExplanation(_ record: borrowing Record) -> String {
    let newer = others.first.map { "push \(record.name(ofOther: $0))" } ?? "a newer push"
    switch kind {
    case .overwrittenInStorage:
      return "\(newer) to the same device and app replaced it in storage before the device could receive it"
    case .trustedAnything:
      return
        "the first push on connection \(record.connection.id), whose handshake showed a certificate that was expired, for "
        + "another name or from an unknown authority, because of a rule with the action certificate"
    case .overwrittenBeforeAck: return "\(newer) to the same device replaced it before the device had acknowledged it"
    default:
      let type = record.facts.pushType == .liveactivity ? "Live Activity" : "background"
      let end = others.isEmpty ? "" : ", and \(newer) replaced it"
      return "the device's budget for \(type) pushes was used up: it held back or dropped this one\(end)"
    }
  }

  /// Returns a duration in nanoseconds as text, in whole milliseconds if it is at least one.
  private static func time(_ nanoseconds: Int64) -> String {
    let milliseconds = nanoseconds / 1_000_000
    return DurationFormat.text(milliseconds > 0 ? .milliseconds(milliseconds) : .nanoseconds(nanoseconds))
  }
}

extension ConnectionFacts {
  /// The provider's address without its port.
  var clientHost: String { client.lastIndex(of: ":").map { String(client[..<$0]) } ?? client }
}
