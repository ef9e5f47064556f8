import FaultModel
internal import HTTP2Session
internal import TLSEngine

/// The fields of `respond` and of the response within `drain`.
enum AnswerKey: String, FileKey {
  case status, reason, timestamp, headers, body, latch, unreal

  static let schemaName = "answer"

  var shape: ValueSyntax {
    switch self {
    case .status: .whole(200...599)
    case .reason: .text
    case .timestamp: .time
    case .headers: .named(.scalar)
    case .body: .either(.text, .json)
    case .latch, .unreal: .flag
    }
  }

  var about: String {
    switch self {
    case .status: "HTTP status. Default: the status of the reason."
    case .reason: "The reason in the body; the usual one of the status, if absent."
    case .timestamp: "The time of a 410: now, -24h, a time, or {ago: 24h}; now, if absent."
    case .headers: "Further header fields."
    case .body: "The whole body instead of a reason; a map is written as JSON."
    case .latch:
      "With TooManyProviderTokenUpdates: the connection repeats this response until the update interval has passed."
    case .unreal: "Allows a status and a reason that do not belong together, or that APNs does not have."
    }
  }
}

/// The field of a time in the past.
enum AgoKey: String, FileKey {
  case ago

  static let schemaName = "ago"
  static let required = [ago]

  var shape: ValueSyntax { .duration }

  var about: String { "How long before the push arrived." }
}

/// The fields of `delay`, of which exactly one is given.
enum DelayKey: String, FileKey {
  case fixed, uniform, lognormal

  static let schemaName = "delay"

  var shape: ValueSyntax {
    switch self {
    case .fixed: .duration
    case .uniform: .map(UniformKey.self)
    case .lognormal: .map(LognormalKey.self)
    }
  }

  var about: String {
    switch self {
    case .fixed: "Always the same."
    case .uniform: "Anything between two, each as likely as the other."
    case .lognormal: "Many short ones, few long ones."
    }
  }
}

/// The fields of a uniform delay.
enum UniformKey: String, FileKey {
  case min, max

  static let schemaName = "uniform"
  static let required = [min, max]

  var shape: ValueSyntax { .duration }

  var about: String {
    switch self {
    case .min: "The shortest."
    case .max: "The longest."
    }
  }
}

/// The fields of a log-normal delay.
enum LognormalKey: String, FileKey {
  case median, sigma, max

  static let schemaName = "lognormal"
  static let required = [median, sigma, max]

  var shape: ValueSyntax {
    switch self {
    case .median, .max: .duration
    case .sigma: .number
    }
  }

  var about: String {
    switch self {
    case .median: "Half of them are shorter."
    case .sigma: "How far they spread: 0 not at all, 1 a lot."
    case .max: "None is longer."
    }
  }
}

/// The fields of `hang` and `stall`.
enum HoldKey: String, FileKey {
  case length = "for"
  case endWith = "end_with"

  static let schemaName = "hold"

  var shape: ValueSyntax {
    switch self {
    case .length: .duration
    case .endWith: .word(Action.Ending.allCases.map(\.rawValue))
    }
  }

  var about: String {
    switch self {
    case .length: "How long; as long as the limits allow, if absent."
    case .endWith: "What ends it."
    }
  }
}

/// The field of `lose_answer`.
enum LossKey: String, FileKey {
  case endWith = "end_with"

  static let schemaName = "loss"

  var shape: ValueSyntax { .word(endings.map(\.rawValue)) }

  var about: String { "How the stream ends for the client. Default: it stays open." }

  private var endings: [Action.Ending] { Action.Ending.afterLoss }
}

extension Action.Ending {
  /// The endings of a push whose response is lost.
  static let afterLoss: [Action.Ending] = [.nothing, .resetStream]
  /// The endings of a stalled TLS handshake.
  static let afterStall: [Action.Ending] = [.close, .nothing, .answer]
}

/// The field of `reset_stream`.
enum ResetKey: String, FileKey {
  case code

  static let schemaName = "reset"

  var shape: ValueSyntax { .either(.word(HTTP2ErrorCode.names), .whole(0...Int(UInt32.max))) }

  var about: String { "Error code of RFC 9113; INTERNAL_ERROR, if absent." }
}

/// The field of `reset_connection`.
enum ConnectionResetKey: String, FileKey {
  case afterAccepting = "after_accepting"

  static let schemaName = "connection_reset"

  var shape: ValueSyntax { .flag }

  var about: String { "Whether the push is accepted first; false, if absent." }
}

/// The fields of `goaway`.
enum GoAwayKey: String, FileKey {
  case code
  case lastStream = "last_stream"
  case debug, twice
  case closeAfter = "close_after"

  static let schemaName = "goaway"

  var shape: ValueSyntax {
    switch self {
    case .code: ResetKey.code.shape
    case .lastStream: .word(Action.LastStream.allCases.map(\.rawValue))
    case .debug: .either(.text, .json)
    case .twice: .flag
    case .closeAfter: .either(.duration, .word(["never"]))
    }
  }

  var about: String {
    switch self {
    case .code: "Error code of RFC 9113; NO_ERROR, if absent."
    case .lastStream: "The last stream id of the GOAWAY. Default: the stream before this one."
    case .debug: "Debug data; a map is written as JSON."
    case .twice: "First with every stream allowed, then with the real last one; false, if absent."
    case .closeAfter: "When the connection is closed; 1s, if absent."
    }
  }
}

/// The fields of `drain`.
enum DrainKey: String, FileKey {
  case length = "for"
  case respond

  static let schemaName = "drain"
  static let required = [length]

  var shape: ValueSyntax {
    switch self {
    case .length: .duration
    case .respond: .map(AnswerKey.self)
    }
  }

  var about: String {
    switch self {
    case .length: "How long, before GOAWAY and the end."
    case .respond: "The response to all pushes. Default: 503 Shutdown."
    }
  }
}

/// The fields of `dribble`.
enum DribbleKey: String, FileKey {
  case chunks, over

  static let schemaName = "dribble"
  static let required = [chunks, over]

  var shape: ValueSyntax {
    switch self {
    case .chunks: .whole(2...1000)
    case .over: .duration
    }
  }

  var about: String {
    switch self {
    case .chunks: "In how many pieces."
    case .over: "How long from the first to the last."
    }
  }
}

/// The field of `drop_header`.
enum DropHeaderKey: String, FileKey {
  case name

  static let schemaName = "drop_header"
  static let required = [name]

  var shape: ValueSyntax { .text }

  var about: String { "The header field to remove from the response." }
}

/// The field of `change_id`.
enum ChangeIDKey: String, FileKey {
  case to

  static let schemaName = "change_id"
  static let required = [to]

  var shape: ValueSyntax { .word(Action.IDChange.allCases.map(\.rawValue)) }

  var about: String { "How to change apns-id in the response." }
}

/// The field of `silence`, `starve_window` and `ignore_pings`.
enum TimeKey: String, FileKey {
  case length = "for"

  static let schemaName = "time"

  var shape: ValueSyntax { .duration }

  var about: String { "How long; for ever, if absent." }
}

/// The fields of `settings`.
enum SettingsKey: String, FileKey {
  case maxConcurrentStreams = "max_concurrent_streams"
  case initialWindowSize = "initial_window_size"
  case maxHeaderListSize = "max_header_list_size"
  case after, delay
  case acknowledgesClient = "ack_client"

  static let schemaName = "settings"

  var shape: ValueSyntax {
    switch self {
    case .maxConcurrentStreams, .maxHeaderListSize: .whole(0...Int(UInt32.max))
    case .initialWindowSize: .whole(0...Int(Int32.max))
    case .after, .delay: .duration
    case .acknowledgesClient: .flag
    }
  }

  var about: String {
    switch self {
    case .maxConcurrentStreams: "SETTINGS_MAX_CONCURRENT_STREAMS."
    case .initialWindowSize: "SETTINGS_INITIAL_WINDOW_SIZE."
    case .maxHeaderListSize: "SETTINGS_MAX_HEADER_LIST_SIZE."
    case .after: "How long after the moment; 0s, if absent."
    case .delay: "The delay of the first SETTINGS frame; only at settings. Default: 0s."
    case .acknowledgesClient: "Whether the client's SETTINGS are acknowledged from then on; true, if absent."
    }
  }
}

/// The field of `alert`.
enum AlertKey: String, FileKey {
  case name

  static let schemaName = "alert"

  var shape: ValueSyntax { .either(.word(TLSAlert.names), .whole(0...255)) }

  var about: String { "The name of the alert in RFC 8446. Default: handshake_failure." }
}

/// The field of `certificate`.
enum CertificateKey: String, FileKey {
  case use

  static let schemaName = "certificate"
  static let required = [use]

  var shape: ValueSyntax { .word(Action.CertificateDefect.allCases.map(\.rawValue)) }

  var about: String { "What is wrong with it." }
}

/// The fields of `sequence`.
enum SequenceKey: String, FileKey {
  case key, steps
  case onEnd = "on_end"

  static let schemaName = "sequence"
  static let required = [steps]

  var shape: ValueSyntax {
    switch self {
    case .key: .word(Trigger.Key.counting.map(\.rawValue))
    case .steps: .list(.action)
    case .onEnd: .word(Action.SequenceEnd.allCases.map(\.rawValue))
    }
  }

  var about: String {
    switch self {
    case .key: "The scope of the position in the sequence. Default: the rule."
    case .steps: "One action after the other, each time the rule fires."
    case .onEnd: "What follows the last step: stay, cycle or pass. Default: stay."
    }
  }
}

/// The fields of an action without fields.
enum NoKey: String, FileKey {
  // An enumeration with raw values needs at least one case.
  case none

  static let schemaName = "nothing"
  static let allCases: [NoKey] = []

  var shape: ValueSyntax { .text }

  var about: String { "" }
}

extension Action.Name {
  /// The fields of the action; nil for `choose`, which is a list.
  var keys: (any FileKey.Type)? {
    switch self {
    case .respond: AnswerKey.self
    case .delay: DelayKey.self
    case .hang, .stall: HoldKey.self
    case .resetStream: ResetKey.self
    case .resetConnection: ConnectionResetKey.self
    case .goAway: GoAwayKey.self
    case .drain: DrainKey.self
    case .loseResponse: LossKey.self
    case .dribble: DribbleKey.self
    case .dropHeader: DropHeaderKey.self
    case .changeID: ChangeIDKey.self
    case .starveWindow, .ignorePings, .silence: TimeKey.self
    case .settings: SettingsKey.self
    case .alert: AlertKey.self
    case .certificate: CertificateKey.self
    case .sequence: SequenceKey.self
    case .close, .splitBody, .truncateBody, .garbleBody, .emptyErrorBody, .refuse, .pass: NoKey.self
    case .choose: nil
    }
  }

  /// A description of the action in one line.
  var about: String {
    switch self {
    case .respond: "Respond with another status or reason than APNs."
    case .delay: "Delay the response."
    case .hang: "Send no response for a time, then end the stream or connection."
    case .resetStream: "RST_STREAM."
    case .resetConnection: "TCP RST."
    case .goAway: "GOAWAY."
    case .close: "FIN without GOAWAY."
    case .drain: "Reject all pushes of the connection for a time, then send GOAWAY and close."
    case .loseResponse: "Accept the push, but never send the response."
    case .dribble: "Send the response body in parts over a time."
    case .splitBody: "The body in two DATA frames."
    case .truncateBody: "The body cut in its middle."
    case .garbleBody: "Replace the response body by invalid JSON."
    case .dropHeader: "Remove a header field of the response."
    case .emptyErrorBody: "An error without a body."
    case .changeID: "Change the case of the response's apns-id."
    case .starveWindow: "No WINDOW_UPDATE for a time."
    case .settings: "Other SETTINGS."
    case .ignorePings: "No PING acknowledgement for a time."
    case .refuse: "The connection is reset as soon as it was accepted."
    case .silence: "Nothing is processed or sent on the connection for a time, not even a TLS alert; then it is closed."
    case .stall: "Stall the TLS handshake for a time, then close the connection."
    case .alert: "Send a TLS alert instead of completing the handshake."
    case .certificate: "A certificate that a careful client refuses."
    case .pass: "Respond as APNs; do not evaluate later rules."
    case .choose: "One of several, by one draw over all weights."
    case .sequence: "One after the other, each time the rule fires."
    }
  }
}
