package import APNSMockNotation
package import APNSMockPushQuery

/// The traffic that a rule applies to: `when` in a profile file. All of its tests must hold.
package struct Condition: Sendable, Equatable {
  /// The value that a test examines.
  package enum Subject: Sendable, Equatable, Hashable {
    /// The device token, compared case-insensitively.
    case deviceToken
    /// `apns-topic`; if absent, the only topic of the provider certificate.
    case topic
    /// `apns-push-type`.
    case pushType
    /// `apns-priority`; 10 if absent.
    case priority
    /// `apns-collapse-id`.
    case collapseID
    /// `apns-id` as the client sent it, compared case-insensitively.
    case apnsID
    /// The value at a JSON pointer (RFC 6901) in the payload.
    case payload(pointer: String)
    /// The first value of a header field; the name is in lower case.
    case header(name: String)
    /// The size of the payload in bytes.
    case size
    /// The age of the provider token according to the settable clock.
    case tokenAge
    /// The provider token's team ID.
    case teamID
    /// The provider token's key ID.
    case keyID
    /// The client's address without its port.
    case client
    /// The client's IP address, compared as an address: different spellings of one IPv6 address are equal.
    case address
    /// The time since the connection was accepted, by the monotonic clock.
    case age
    /// The time since the client last sent anything on the connection, by the monotonic clock.
    case idle
    /// The index of the APNs listener, from 0.
    case listener
    /// The environment of that listener.
    case environment
    /// What the request asks for. Without a test of it, a rule applies only to pushes.
    case kind
    /// The ID of the connection as in records, for example `c17`.
    case connection
    /// The payload and the header fields, searched for a text; only in a query.
    case text
    /// The host name that the client requested in the TLS handshake (SNI), compared case-insensitively.
    case serverName
    /// The `UID` of the client certificate; absent without one.
    case certificate
    /// The attempt number of the push, from 1.
    case attempt
    /// The status of the response about to be sent; only at `response`.
    case status
    /// The reason of the response about to be sent; only at `response`.
    case reason
  }

  /// The requirement on a value.
  package enum Match: Sendable, Equatable {
    /// Exactly this text.
    case equals(String)
    /// A text with this prefix.
    case prefix(String)
    /// A text in which `*` matches any bytes.
    case glob(TextPattern)
    /// One of these texts.
    case oneOf(Set<String>)
    /// An IP address in one of these blocks.
    case within([AddressBlock])
    /// Whether there is a value at all.
    case present(Bool)
    /// A number, or a duration in seconds, strictly between these bounds.
    case between(above: Double?, below: Double?)
    /// The terms of a query about this subject.
    case query(FieldConditions)
  }

  /// One subject and the requirement on it.
  package struct Test: Sendable, Equatable {
    /// The value to examine.
    package var subject: Subject
    /// The requirement on the value.
    package var match: Match

    /// Creates a test.
    package init(_ subject: Subject, _ match: Match) {
      self.subject = subject
      self.match = match
    }
  }

  /// The text of `q`, a condition in the inbox's query language, or nil without one. Its tests are the last of
  /// `tests`.
  package var query: String?
  /// The tests, all of which must hold.
  package var tests: [Test]
  /// Conditions that must not hold: `not` in a profile file.
  package var exceptions: [Condition]

  /// Whether a test or an exception examines the kind of the request.
  package var namesKind: Bool {
    tests.contains { $0.subject == .kind } || exceptions.contains(where: \.namesKind)
  }

  /// Creates a condition; an empty condition always holds.
  package init(_ tests: [Test] = [], exceptions: [Condition] = []) {
    self.tests = tests
    self.exceptions = exceptions
  }
}

extension Condition.Subject {
  /// Whether texts are compared case-insensitively.
  package var foldsCase: Bool {
    switch self {
    case .deviceToken, .apnsID, .serverName: true
    default: false
    }
  }

  /// Returns a text in the form used for comparison.
  package func folded(_ text: String) -> String { foldsCase ? text.lowercased() : text }
}
