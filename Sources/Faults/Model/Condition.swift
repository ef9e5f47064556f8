public import Notation

/// For which traffic a rule is: the word `when`. All of its tests must hold.
public struct Condition: Sendable, Equatable {
  /// What is looked at.
  public enum Subject: Sendable, Equatable, Hashable {
    /// The device token, without case.
    case deviceToken
    /// The topic: of the header, or the only one of the provider certificate.
    case topic
    /// `apns-push-type`.
    case pushType
    /// `apns-priority`, 10 when absent.
    case priority
    /// `apns-collapse-id`.
    case collapseID
    /// `apns-id` as the client gave it.
    case apnsID
    /// The value at a JSON pointer (RFC 6901) of the payload.
    case payload(pointer: String)
    /// The first value of a header field, by its name in small letters.
    case header(name: String)
    /// How many bytes the payload has.
    case size
    /// How old the provider token is, by the settable clock.
    case tokenAge
    /// The provider token's team id.
    case teamID
    /// The provider token's key id.
    case keyID
    /// The client's address, without its port.
    case client
    /// The client's IP address, compared as an address: different spellings of one IPv6 address are equal.
    case address
    /// How long ago the connection was accepted.
    case age
    /// How long the client has sent nothing on the connection.
    case idle
    /// Which of the server's APNs listeners, from 0.
    case listener
    /// The id of the connection, as records have it: `c17`.
    case connection
    /// The payload and the header fields, for a text anywhere in them; only in a query.
    case text
    /// The host name the client asked for in its TLS handshake.
    case serverName
    /// The `UID` of the client certificate; absent without one.
    case certificate
    /// How often this push came until now, from 1.
    case attempt
    /// The status of the answer that is about to leave; at `response` alone.
    case status
    /// The reason of the answer that is about to leave; at `response` alone.
    case reason
  }

  /// What the value must be.
  public enum Match: Sendable, Equatable {
    /// Just this text.
    case equals(String)
    /// A text that begins so.
    case prefix(String)
    /// A text with `*` for any bytes.
    case glob(TextPattern)
    /// One of these texts.
    case oneOf(Set<String>)
    /// An IP address in one of these blocks.
    case within([AddressBlock])
    /// Whether there is a value at all.
    case present(Bool)
    /// A number, or a duration in seconds, within these bounds, neither of which is inclusive.
    case between(above: Double?, below: Double?)
    /// The terms of a query about this subject.
    case query(FieldQuery)
  }

  /// One subject and what it must be.
  public struct Test: Sendable, Equatable {
    /// What is looked at.
    public var subject: Subject
    /// What it must be.
    public var match: Match

    /// A test of one subject.
    public init(_ subject: Subject, _ match: Match) {
      self.subject = subject
      self.match = match
    }
  }

  /// The text of `q`, a condition in the inbox's query language, whose tests are the last of `tests`; nil without one.
  public internal(set) var query: String?
  /// All of these must hold.
  public var tests: [Test]
  /// None of these may hold as a whole: the word `not`.
  public var exceptions: [Condition]

  /// A condition; the empty one always holds.
  public init(_ tests: [Test] = [], exceptions: [Condition] = []) {
    self.tests = tests
    self.exceptions = exceptions
  }
}
