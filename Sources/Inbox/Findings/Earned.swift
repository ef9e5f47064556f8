internal import Notation

/// What a record has earned by what went before it: as little as is needed to tell it when somebody asks.
struct Earned: Sendable {
  /// What the finding rests on.
  enum Proof: Sendable {
    /// The answer that no repetition changes.
    case permanent(answer: String)
    /// The answer 410, and how many nanoseconds it had been.
    case gone(answer: String, after: Int64)
    /// The answer "not now", how many nanoseconds the provider waited, and how many seconds it was asked to wait.
    case hot(answer: String, after: Int64, asked: Int64?)
    /// The nanoseconds between the attempts.
    case steady([Int64])
    /// Milliseconds since the former token, and how many there should be.
    case earlyToken(after: Int64, least: Int64)
    /// Key and time of issue are those of another JWT.
    case sameClaims
    /// Each of some connections came with a token of its own.
    case tokenForEachConnection
    /// Nanoseconds since APNs said that the token has expired.
    case expired(after: Int64)
    /// The last stream that GOAWAY named, and how many nanoseconds ago.
    case goAway(lastStream: Int32, after: Int64)
    /// MAX_CONCURRENT_STREAMS.
    case excess(limit: UInt32)
    /// So many nanoseconds from the first connection to the last.
    case connections(within: Int64)
    /// APNs took it before.
    case twice
    /// No further attempt followed within so many milliseconds of the server's clock.
    case abandoned(after: Int64)
  }

  let kind: Finding.Kind
  /// The other records that prove it, ascending.
  let others: [Int]
  let proof: Proof

  init(_ kind: Finding.Kind, with others: [Int], _ proof: Proof) {
    self.kind = kind
    self.others = others
    self.proof = proof
  }

  /// The finding on the record that has earned it.
  func finding(on record: borrowing Record) -> Finding {
    Finding(
      kind, seq: record.seq, evidence: (others + [record.seq]).sorted(), explanation: explanation(record))
  }

  private func explanation(_ record: borrowing Record) -> String {
    let first = others.first ?? record.seq
    switch proof {
    case .permanent(let answer):
      return "push \(first) was answered \(answer), and nothing that the answer is about has changed since"
    case .gone(let answer, let after):
      return "APNs had answered \(answer) for this device token and topic \(Self.time(after)) before, to push \(first)"
    case .hot(let answer, let after, let asked):
      let asked = asked.map { ", though retry-after asked for \(WrittenDuration.text(.seconds($0)))" } ?? ""
      return "sent again \(Self.time(after)) after push \(first) was answered \(answer)\(asked)"
    case .steady(let delays):
      let list = delays.map(Self.time).joined(separator: ", ")
      return "attempt \(others.count + 1) of this push, and the delays between the attempts do not grow: \(list)"
    case .earlyToken(let after, let least):
      return
        "another provider token on this connection \(Self.time(after &* 1_000_000)) after push \(first) had brought the "
        + "one before; the least is \(WrittenDuration.text(.milliseconds(least)))"
    case .sameClaims:
      return "another JWT with the kid and iat of the one in push \(first): tokens are made again and again instead of "
        + "being kept"
    case .tokenForEachConnection:
      return "\(others.count + 1) connections in a row brought one push each and each a provider token of its own"
    case .expired(let after):
      return "the provider token that was answered 403 ExpiredProviderToken in push \(first) came again "
        + "\(Self.time(after)) later"
    case .goAway(let lastStream, let after):
      return
        "stream \(record.stream) came \(Self.time(after)) after a GOAWAY that named stream \(lastStream) as the last: "
        + "nobody answers it"
    case .excess(let limit):
      return
        "stream \(record.stream) was one more than the \(limit) open at once that MAX_CONCURRENT_STREAMS allows and the "
        + "client had acknowledged"
    case .connections(let within):
      let host = record.connection.clientHost
      return "the \(others.count + 1)th connection within \(Self.time(within)) that \(host) closed after one push"
    case .twice:
      return
        "APNs had taken this push as push \(first), whose answer did not arrive; under another apns-id it is a second "
        + "notification"
    case .abandoned(let after):
      let end = record.served.status == nil ? "was not answered" : "was answered \(record.answerText)"
      return "attempt \(record.attempt) \(end), and no further attempt followed within "
        + WrittenDuration.text(.milliseconds(after))
    }
  }

  /// A length of time in nanoseconds as people say it: in whole milliseconds where there are some.
  private static func time(_ nanoseconds: Int64) -> String {
    let milliseconds = nanoseconds / 1_000_000
    return WrittenDuration.text(milliseconds > 0 ? .milliseconds(milliseconds) : .nanoseconds(nanoseconds))
  }
}

extension ConnectionFacts {
  /// The provider's address without its port.
  var clientHost: String { client.lastIndex(of: ":").map { String(client[..<$0]) } ?? client }
}
