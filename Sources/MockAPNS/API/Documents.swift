import APNSMockNotation

extension MockServer {
  /// A query of the inbox as a value, such as `.token("cd34") && .status(503)`. In patterns, `*` is any text.
  public struct Query: Sendable, Equatable, CustomStringConvertible {
    /// The query as text.
    public let description: String

    /// Creates a query from its text, as in the documentation page "Reading the inbox".
    public init(_ text: String) { description = text }

    /// Pushes that APNs accepted.
    public static let accepted = Query("accepted:true")
    /// Further attempts of a push.
    public static let retry = Query("is:retry")

    /// Pushes to a device token.
    public static func token(_ pattern: String) -> Query { field("token", pattern) }
    /// Pushes with a topic.
    public static func topic(_ pattern: String) -> Query { field("topic", pattern) }
    /// Pushes with a push type, such as `background`.
    public static func pushType(_ name: String) -> Query { field("type", name) }
    /// Attempts that were answered with a status.
    public static func status(_ status: Int) -> Query { Query("status:\(status)") }
    /// Attempts that were answered with a reason, such as `BadDeviceToken`.
    public static func reason(_ name: String) -> Query { field("reason", name) }
    /// Attempts that ended in a way.
    public static func outcome(_ outcome: ReceivedPush.Outcome) -> Query { field("outcome", outcome.rawValue) }
    /// Pushes that a fault rule affected.
    public static func rule(_ name: String) -> Query { field("rule", name) }
    /// Pushes with a text in the payload at a JSON pointer such as `/aps/alert/title`.
    public static func payload(_ pointer: String, _ pattern: String) -> Query { field("payload.\(pointer)", pattern) }

    /// Pushes to which both queries apply. Two values of one field mean either.
    public static func && (left: Query, right: Query) -> Query { Query("\(left) \(right)") }

    private static func field(_ name: String, _ value: String) -> Query {
      let escapes = [("\\", "\\\\"), ("\"", "\\\""), ("\n", "\\n"), ("\t", "\\t")]
      return Query("\(name):\"\(escapes.reduce(value) { $0.replacing($1.0, with: $1.1) })\"")
    }
  }

  /// A fault rule as a value, such as `Rule(when: .topic("com.example.*"), every: 3, do: .respond(status: 503))`.
  public struct Rule: Sendable {
    /// What a rule does with a push.
    public struct Action: Sendable {
      fileprivate let json: String

      /// Responds with a status and its most common reason.
      public static func respond(status: Int) -> Action { Action(json: #"{"respond":{"status":\#(status)}}"#) }
      /// Responds with a reason and its status.
      public static func respond(reason: String) -> Action {
        Action(json: MockServer.json { $0.objectMember("respond") { $0.member("reason", reason) } })
      }
      /// Delays the response.
      public static func delay(_ duration: Duration) -> Action {
        Action(json: #"{"delay":{"fixed":"\#(DurationFormat.text(duration))"}}"#)
      }
      /// Sends GOAWAY; this push and later ones on the connection are not processed.
      public static let goAway = Action(json: #"{"goaway":{}}"#)
      /// Resets the stream with RST_STREAM.
      public static let resetStream = Action(json: #"{"reset_stream":{}}"#)
      /// Resets the TCP connection.
      public static let resetConnection = Action(json: #"{"reset_connection":{}}"#)
    }

    let json: String

    /// Creates a rule.
    ///
    /// - Parameters:
    ///   - name: The name; nil for a generated one.
    ///   - when: The pushes, by conditions on the request; nil for all.
    ///   - probability: The probability of firing, from 0 to 1.
    ///   - every: Fires for each n-th push.
    ///   - times: The maximum number of times the rule fires.
    ///   - action: The action.
    public init(
      _ name: String? = nil, when: Query? = nil, probability: Double? = nil, every: Int? = nil, times: Int? = nil,
      do action: Action
    ) {
      json = MockServer.json { writer in
        if let name { writer.member("name", name) }
        if let when { writer.objectMember("when") { $0.member("q", when.description) } }
        if probability != nil || every != nil || times != nil {
          writer.objectMember("trigger") { writer in
            if let probability { writer.member("probability", probability) }
            if let every { writer.member("every", every) }
            if let times { writer.member("times", times) }
          }
        }
        writer.member("do", verbatim: action.json)
      }
    }
  }

  /// Expectations of a verification as a value, such as `Expectations(.exactly(1, .token("cd34")), nothingLost: true)`.
  public struct Expectations: Sendable {
    /// How many pushes match a query.
    public struct Expectation: Sendable {
      fileprivate let json: String

      /// Exactly this number of pushes matches.
      public static func exactly(_ count: Int, _ query: Query) -> Expectation { bounded("exactly", count, query) }
      /// This number of pushes or more matches.
      public static func atLeast(_ count: Int, _ query: Query) -> Expectation { bounded("at_least", count, query) }
      /// This number of pushes or fewer matches.
      public static func atMost(_ count: Int, _ query: Query) -> Expectation { bounded("at_most", count, query) }

      private static func bounded(_ bound: String, _ count: Int, _ query: Query) -> Expectation {
        Expectation(
          json: MockServer.json { writer in
            writer.member("match", query.description)
            writer.objectMember("count") { $0.member(bound, count) }
          })
      }
    }

    let json: String

    /// Creates expectations.
    ///
    /// - Parameters:
    ///   - expectations: The expected numbers of pushes.
    ///   - noOthers: Whether a push that matches none of `expectations` is a failure.
    ///   - nothingLost: Whether a push that was neither accepted nor rejected for good is a failure.
    ///   - noFindings: The findings that must not occur.
    public init(
      _ expectations: Expectation..., noOthers: Bool = false, nothingLost: Bool = false, noFindings: [String] = []
    ) {
      json = MockServer.json { writer in
        if !expectations.isEmpty {
          writer.member("expect", verbatim: "[\(expectations.map(\.json).joined(separator: ","))]")
        }
        if noOthers { writer.member("no_others", true) }
        if nothingLost { writer.member("nothing_lost", true) }
        if !noFindings.isEmpty { writer.member("no_findings", noFindings) }
      }
    }
  }

  fileprivate static func json(_ members: (inout JSONWriter) -> Void) -> String {
    var writer = JSONWriter()
    writer.object(members)
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}

extension JSONWriter {
  fileprivate mutating func member(_ name: String, verbatim json: String) {
    self.name(name)
    verbatim(Array(json.utf8))
  }
}
