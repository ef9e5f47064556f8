import FaultModel
internal import HTTP2Session
internal import TLSEngine

/// The fields of `respond` and of the response within `drain`.
enum ResponseKey: String, FileKey {
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
    case .reason: "The reason in the body. Default: the most common reason of the status."
    case .timestamp: "The timestamp of a 410: now, -24h, a time, or {ago: 24h}. Default: now."
    case .headers: "Additional header fields."
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

  var about: String { "The time before the push arrived." }
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
    case .fixed: "A constant delay."
    case .uniform: "A uniform distribution."
    case .lognormal: "A log-normal distribution: many short delays, few long ones."
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
    case .min: "The shortest delay."
    case .max: "The longest delay."
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
    case .median: "The median: half of the delays are shorter."
    case .sigma: "The spread: 0 is none, 1 is wide."
    case .max: "The maximum; longer delays are cut to it."
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
    case .length: "The duration. Default: limits.max_hold of the profile."
    case .endWith: "What happens afterwards. Default: reset_stream for hang, close for stall."
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

  var about: String { "Error code of RFC 9113. Default: INTERNAL_ERROR." }
}

/// The field of `reset_connection`.
enum ConnectionResetKey: String, FileKey {
  case afterAccepting = "after_accepting"

  static let schemaName = "connection_reset"

  var shape: ValueSyntax { .flag }

  var about: String { "Whether the push is accepted first. Default: false." }
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
    case .code: "Error code of RFC 9113. Default: NO_ERROR."
    case .lastStream: "The last stream id of the GOAWAY. Default: the stream before this one."
    case .debug: "Debug data; a map is written as JSON."
    case .twice: "Whether a first GOAWAY allows every stream and a second one names the last stream. Default: false."
    case .closeAfter: "The time until the connection is closed. Default: 1s."
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
    case .respond: .map(ResponseKey.self)
    }
  }

  var about: String {
    switch self {
    case .length: "The duration, after which GOAWAY is sent and the connection is closed."
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
    case .chunks: "The number of pieces."
    case .over: "The time from the first piece to the last."
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

  var about: String { "The duration. Default: limits.max_hold for silence; otherwise until the connection ends." }
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
    case .after: "The delay from the injection point to the frame. Default: 0s."
    case .delay: "The delay of the first SETTINGS frame; only at settings. Default: 0s."
    case .acknowledgesClient: "Whether the client's SETTINGS are acknowledged from then on. Default: true."
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

  var about: String { "The defect of the certificate." }
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
    case .steps: "The actions; each time the rule fires, the next one applies."
    case .onEnd: "After the last step: repeat it, start again, or stop firing. Default: stay."
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
    case .respond: ResponseKey.self
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
    case .resetStream: "Send RST_STREAM."
    case .resetConnection: "Reset the TCP connection."
    case .goAway: "Send GOAWAY."
    case .close: "Close the connection without GOAWAY."
    case .drain: "Reject all pushes of the connection for a time, then send GOAWAY and close."
    case .loseResponse: "Accept the push, but never send the response."
    case .dribble: "Send the response body in parts over a time."
    case .splitBody: "Send the response body in two DATA frames."
    case .truncateBody: "Send only the first half of the response body."
    case .garbleBody: "Replace the response body by invalid JSON."
    case .dropHeader: "Remove a header field of the response."
    case .emptyErrorBody: "Remove the body of an error response."
    case .changeID: "Change the case of the response's apns-id."
    case .starveWindow: "Send no WINDOW_UPDATE for a time."
    case .settings: "Send other SETTINGS."
    case .ignorePings: "Do not acknowledge PING for a time."
    case .refuse: "Reset the connection immediately after accepting it."
    case .silence: "Process and send nothing on the connection for a time, not even a TLS alert; then close it."
    case .stall: "Stall the TLS handshake for a time, then close the connection."
    case .alert: "Send a TLS alert instead of completing the handshake."
    case .certificate: "Present a certificate that a verifying client rejects."
    case .pass: "Respond as APNs; do not evaluate later rules."
    case .choose:
      "Choose one of several actions by one draw over all weights (a list of actions, each with an optional weight)."
    case .sequence: "Perform the next of several actions each time the rule fires."
    }
  }
}
