package import APNSMockNotation
package import APNSMockRules
internal import APNSMockHTTPMessage

/// The action of a rule: `do` in a profile file. A description only; the server carries it out.
package indirect enum Action: Sendable, Equatable {
  /// Responds with another status or body than APNs would.
  case respond(Response)
  /// Delays the response.
  case delay(Delay)
  /// Sends no response for a time, then ends with `endWith`; nil waits for the profile's `limits.max_hold`.
  case hang(for: Duration?, endWith: Ending)
  /// Sends RST_STREAM with an error code of RFC 9113, section 7.
  case resetStream(code: UInt32)
  /// Resets the TCP connection; `afterAccepting` says whether the push counts as accepted.
  case resetConnection(afterAccepting: Bool)
  /// Sends GOAWAY.
  case goAway(GoAwayParameters)
  /// Closes the connection without GOAWAY.
  case close
  /// Gives every push on the connection this response for a time, then sends GOAWAY and closes.
  case respondThenShutDown(for: Duration, respond: Response)
  /// Accepts and records the push, but never sends the response.
  case loseResponse(endWith: Ending)
  /// Sends the response body in `chunks` pieces, spread over a time.
  case dribble(chunks: Int, over: Duration)
  /// Sends the response body in two DATA frames.
  case splitBody
  /// Sends only the first half of the response body.
  case truncateBody
  /// Sends a response body that is not valid JSON.
  case garbleBody
  /// Removes one header field from the response.
  case dropHeader(name: String)
  /// Removes the body of an error response.
  case emptyErrorBody
  /// Changes the case of the letters of `apns-id`, `apns-request-id` and `apns-unique-id` in the response.
  case changeID(IDChange)
  /// Sends no WINDOW_UPDATE for a time; nil for the rest of the connection.
  case starveWindow(for: Duration?)
  /// Sends other SETTINGS.
  case settings(SettingsParameters)
  /// Does not acknowledge PING for a time; nil for the rest of the connection.
  case ignorePings(for: Duration?)
  /// Resets the connection immediately after accepting it.
  case refuse
  /// Accepts the connection but discards what it receives and sends nothing for a time, then closes it; nil waits for
  /// `limits.max_hold`.
  case silence(for: Duration?)
  /// Stalls the TLS handshake for a time, then ends with `endWith`; nil waits for `limits.max_hold`.
  case stall(for: Duration?, endWith: Ending)
  /// Sends a TLS alert instead of completing the handshake; the alert's number is that of RFC 8446, section 6.
  case alert(code: UInt8)
  /// Presents a certificate that a verifying client rejects.
  case certificate(CertificateDefect)
  /// Responds as APNs would and ends rule evaluation.
  case pass
  /// Does one of several actions, chosen by one draw over all weights.
  case choose([Choice])
  /// Does the next of several actions each time the rule fires.
  case sequence(key: Trigger.Key, steps: [Action], onEnd: SequenceEnd)

  /// A response to inject.
  package struct Response: Sendable, Equatable {
    /// HTTP status.
    package var status: Int
    /// The reason in the body; nil for no body.
    package var reason: String? { didSet { knownReason = reason.flatMap(Reason.init(text:)) } }
    /// The reason as an APNs reason, or nil if APNs does not have it. Looked up once instead of for each push.
    package private(set) var knownReason: Reason?
    /// The `timestamp` of a 410 response.
    package var timestamp: Timestamp
    /// Additional header fields.
    package var headers: [Field]
    /// The header field `retry-after`; nil for none.
    package var retryAfter: RetryAfter?
    /// The whole body in UTF-8, in place of a reason. All responses share its storage.
    package var body: [UInt8]?
    /// With 429 `TooManyProviderTokenUpdates`: whether the connection repeats the response until the update interval
    /// has passed, as APNs does.
    package var blocksTokenUpdates: Bool

    /// Creates a response; the default `timestamp` is the current time.
    package init(
      status: Int, reason: String?, timestamp: Timestamp = .relative(.zero), headers: [Field] = [],
      retryAfter: RetryAfter? = nil, body: String? = nil, blocksTokenUpdates: Bool = false
    ) {
      self.status = status
      self.reason = reason
      knownReason = reason.flatMap(Reason.init(text:))
      self.timestamp = timestamp
      self.headers = headers
      self.retryAfter = retryAfter
      self.body = body.map { Array($0.utf8) }
      self.blocksTokenUpdates = blocksTokenUpdates
    }
  }

  /// A header field.
  package struct Field: Sendable, Equatable {
    /// The name in lower case.
    package var name: String
    /// The value, sent unchanged.
    package var value: String

    /// Creates a header field.
    package init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  /// The header field `retry-after` (RFC 9110, section 10.2.3).
  package enum RetryAfter: Sendable, Equatable {
    /// The time to wait, in whole seconds.
    case seconds(Duration)
    /// The date after this time, by the settable clock.
    case date(Duration)

    /// The time to wait, in seconds, rounded up.
    package var delay: Int64 {
      switch self {
      case .seconds(let time), .date(let time): time.components.seconds + (time.components.attoseconds > 0 ? 1 : 0)
      }
    }
  }

  /// A time according to the settable clock.
  package enum Timestamp: Sendable, Equatable {
    /// An offset from the arrival of the push; negative for the past.
    case relative(Duration)
    /// Milliseconds since 1970.
    case absolute(Int64)
  }

  /// The distribution of a delay.
  package enum Delay: Sendable, Equatable {
    /// A constant delay.
    case fixed(Duration)
    /// A uniform distribution.
    case uniform(min: Duration, max: Duration)
    /// A log-normal distribution, truncated at `max`.
    case lognormal(median: Duration, sigma: Double, max: Duration)
  }

  /// What happens when the time of `hang` or `stall` is over.
  package enum Ending: String, CaseIterable, Sendable {
    /// Nothing; the stream stays open without a response.
    case nothing
    /// RST_STREAM is sent.
    case resetStream = "reset_stream"
    /// The connection is closed.
    case close
    /// The response APNs would have sent is sent late; a stalled TLS handshake continues.
    case answer
  }

  /// The last stream that a GOAWAY frame names.
  package enum LastStream: String, CaseIterable, Sendable {
    /// The stream before the push that triggers the fault; that push is then neither accepted nor answered.
    case beforeThis = "before_this"
    /// The stream of the push that triggers the fault; that push is answered.
    case this
    /// 2³¹−1: every stream.
    case all
  }

  /// A GOAWAY frame to send.
  package struct GoAwayParameters: Sendable, Equatable {
    /// Error code of RFC 9113, section 7.
    package var code: UInt32
    /// The last stream that the frame names.
    package var lastStream: LastStream
    /// The debug data exactly as sent, JSON or text.
    package var debugData: String
    /// Whether a GOAWAY with last stream 2³¹−1 is sent first, then one with the actual last stream.
    package var twice: Bool
    /// The time from the frame to the close of the connection; nil leaves the connection open.
    package var closeAfter: Duration?

    /// Creates a GOAWAY with the defaults of a planned shutdown, except that the triggering push is not answered.
    package init(
      code: UInt32 = 0, lastStream: LastStream = .beforeThis, debugData: String = "", twice: Bool = false,
      closeAfter: Duration? = .seconds(1)
    ) {
      self.code = code
      self.lastStream = lastStream
      self.debugData = debugData
      self.twice = twice
      self.closeAfter = closeAfter
    }
  }

  /// SETTINGS to send. A nil parameter is left out of the frame.
  package struct SettingsParameters: Sendable, Equatable {
    /// SETTINGS_MAX_CONCURRENT_STREAMS.
    package var maxConcurrentStreams: UInt32?
    /// SETTINGS_INITIAL_WINDOW_SIZE, in bytes.
    package var initialWindowSize: UInt32?
    /// SETTINGS_MAX_HEADER_LIST_SIZE, in bytes.
    package var maxHeaderListSize: UInt32?
    /// The delay before the frame is sent, counted from the injection point; at `settings`, from the first SETTINGS
    /// frame.
    package var after: Duration
    /// How long the first SETTINGS frame of the connection is delayed; only at `settings`. Nothing is sent before
    /// it.
    package var delay: Duration
    /// Whether the client's own SETTINGS are acknowledged from then on.
    package var acknowledgesClient: Bool

    /// Creates parameters; the defaults change nothing.
    package init(
      maxConcurrentStreams: UInt32? = nil, initialWindowSize: UInt32? = nil, maxHeaderListSize: UInt32? = nil,
      after: Duration = .zero, delay: Duration = .zero, acknowledgesClient: Bool = true
    ) {
      self.maxConcurrentStreams = maxConcurrentStreams
      self.initialWindowSize = initialWindowSize
      self.maxHeaderListSize = maxHeaderListSize
      self.after = after
      self.delay = delay
      self.acknowledgesClient = acknowledgesClient
    }
  }

  /// The defect of a certificate that the server presents.
  package enum CertificateDefect: String, CaseIterable, Sendable {
    /// Its validity period has ended.
    case expired
    /// It is for another host name.
    case wrongName = "wrong_name"
    /// Its issuer is not a trusted authority.
    case untrusted
  }

  /// A change to the identifiers in a response.
  package enum IDChange: String, CaseIterable, Sendable {
    /// All letters in upper case.
    case upperCase = "upper_case"
    /// All letters in lower case.
    case lowerCase = "lower_case"
  }

  /// One alternative of `choose`.
  package struct Choice: Sendable, Equatable {
    /// The relative weight; above 0.
    package var weight: Double
    /// The action if this alternative is chosen.
    package var action: Action

    /// Creates an alternative.
    package init(weight: Double, action: Action) {
      self.weight = weight
      self.action = action
    }
  }

  /// What follows the last step of a sequence.
  package enum SequenceEnd: String, CaseIterable, Sendable {
    /// The last step is repeated.
    case stay
    /// The sequence starts again with the first step.
    case cycle
    /// The rule no longer fires.
    case pass
  }
}

/// The name of each action, its injection points, and whether rule evaluation continues after it.
extension Action {
  /// The name of an action in a profile file, in the order of the documentation.
  package enum Name: String, CaseIterable, Sendable {
    case respond, delay, hang
    case resetStream = "reset_stream"
    case resetConnection = "reset_connection"
    case goAway = "goaway"
    case close
    case respondThenShutDown = "drain"
    case loseResponse = "lose_answer"
    case dribble
    case splitBody = "split_body"
    case truncateBody = "truncate_body"
    case garbleBody = "garble_body"
    case dropHeader = "drop_header"
    case emptyErrorBody = "empty_error_body"
    case changeID = "change_id"
    case starveWindow = "starve_window"
    case settings
    case ignorePings = "ignore_pings"
    case refuse, silence, stall, alert, certificate, pass, choose, sequence

    /// The injection points at which the action is allowed. `choose` and `sequence` are allowed where all of their
    /// parts are.
    package var injectionPoints: Set<InjectionPoint> {
      switch self {
      case .respond, .pass: [.request]
      case .delay, .hang, .resetStream: [.request, .response]
      case .resetConnection: [.request, .connection]
      case .goAway, .close: [.request, .response, .connection]
      case .respondThenShutDown: [.connection]
      case .loseResponse, .dribble, .splitBody, .truncateBody, .garbleBody, .dropHeader, .emptyErrorBody, .changeID:
        [.response]
      case .starveWindow: [.request, .connection]
      case .settings: [.settings, .connection]
      case .ignorePings: [.connection]
      case .refuse: [.accept]
      case .silence: [.accept, .connection]
      case .stall, .alert, .certificate: [.tls]
      case .choose, .sequence: Set(InjectionPoint.allCases)
      }
    }

    /// Whether evaluation continues with the next rule after this action, unless the rule's `then` overrides it; nil
    /// for `choose` and `sequence`, where it depends on the chosen action.
    package var continues: Bool? {
      switch self {
      case .delay, .dribble, .splitBody, .truncateBody, .garbleBody, .dropHeader, .emptyErrorBody, .changeID,
        .starveWindow, .settings, .ignorePings, .certificate:
        true
      case .respond, .hang, .resetStream, .resetConnection, .goAway, .close, .respondThenShutDown, .loseResponse,
        .refuse, .silence, .stall, .alert, .pass:
        false
      case .choose, .sequence: nil
      }
    }
  }

  /// The action's name.
  package var name: Name {
    switch self {
    case .respond: .respond
    case .delay: .delay
    case .hang: .hang
    case .resetStream: .resetStream
    case .resetConnection: .resetConnection
    case .goAway: .goAway
    case .close: .close
    case .respondThenShutDown: .respondThenShutDown
    case .loseResponse: .loseResponse
    case .dribble: .dribble
    case .splitBody: .splitBody
    case .truncateBody: .truncateBody
    case .garbleBody: .garbleBody
    case .dropHeader: .dropHeader
    case .emptyErrorBody: .emptyErrorBody
    case .changeID: .changeID
    case .starveWindow: .starveWindow
    case .settings: .settings
    case .ignorePings: .ignorePings
    case .refuse: .refuse
    case .silence: .silence
    case .stall: .stall
    case .alert: .alert
    case .certificate: .certificate
    case .pass: .pass
    case .choose: .choose
    case .sequence: .sequence
    }
  }
}

/// An error response with only a status and a body, the same for every push. Created once per rule.
package struct ConstantResponse: Sendable {
  /// The HTTP status; never one of success.
  package let status: Int
  /// The reason in the body; nil without one.
  package let reason: Reason?
  /// The whole body.
  package let body: [UInt8]
}

extension Action {
  /// The action's response if it is the same for every push and the action does nothing else; otherwise nil.
  package var constantResponse: ConstantResponse? {
    // A 410 contains the current time, and recording a reason that APNs does not have needs more than a
    // constant response.
    guard case .respond(let response) = self, !HTTPStatus.isSuccess(response.status), response.status != 410,
      !response.blocksTokenUpdates,
      response.headers.isEmpty, response.retryAfter == nil, response.reason == nil || response.knownReason != nil
    else { return nil }
    return ConstantResponse(status: response.status, reason: response.knownReason, body: response.body(serverTime: 0))
  }
}

extension Action.Response {
  /// Returns the additional header fields.
  ///
  /// - Parameter serverTime: The time by the server's clock, in milliseconds since 1970.
  package func headers(serverTime: ServerTime) -> [Action.Field] {
    guard let retryAfter else { return headers }
    // A date is in whole seconds, so that the next one is the first that is late enough.
    let date = HTTPDate.text((serverTime + 999) / 1000 * 1000 + retryAfter.delay * 1000)
    let isDate = if case .date = retryAfter { true } else { false }
    return headers + [Action.Field(name: "retry-after", value: isDate ? date ?? "0" : String(retryAfter.delay))]
  }

  /// Returns the response body.
  ///
  /// - Parameter serverTime: The time by the server's clock, in milliseconds since 1970.
  package func body(serverTime: ServerTime) -> [UInt8] {
    if let body { return body }
    let timestamp: Int64? =
      switch timestamp {
      case _ where status != 410: nil
      case .relative(let time): serverTime.addingReportingOverflow(time.wholeMilliseconds).partialValue
      case .absolute(let time): time
      }
    if let knownReason { return knownReason.body(timestamp: timestamp) }
    return reason.map { Reason.body(of: $0, timestamp: timestamp) } ?? []
  }
}

extension Duration {
  /// The duration in whole milliseconds, possibly negative, clamped to the range of Int64.
  fileprivate var wholeMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    guard !overflow else { return seconds < 0 ? .min : .max }
    return product.addingReportingOverflow(attoseconds / 1_000_000_000_000_000).partialValue
  }
}
