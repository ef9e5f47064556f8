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
    case .loseAnswer: LossKey.self
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
    case .respond: "Another answer than APNs would give."
    case .delay: "The answer later."
    case .hang: "No answer for a time, then an end."
    case .resetStream: "RST_STREAM."
    case .resetConnection: "TCP RST."
    case .goAway: "GOAWAY."
    case .close: "FIN without GOAWAY."
    case .drain: "For a time every push of the connection gets one answer, then GOAWAY and close."
    case .loseAnswer: "The push is accepted, its answer never leaves."
    case .dribble: "The body of the answer in pieces over a time."
    case .splitBody: "The body in two DATA frames."
    case .truncateBody: "The body cut in its middle."
    case .garbleBody: "The body as bytes that are no JSON."
    case .dropHeader: "The answer without one of its header fields."
    case .emptyErrorBody: "An error without a body."
    case .changeID: "apns-id of the answer in other letters."
    case .starveWindow: "No WINDOW_UPDATE for a time."
    case .settings: "Other SETTINGS."
    case .ignorePings: "No PING acknowledgement for a time."
    case .refuse: "The connection is reset as soon as it was accepted."
    case .silence: "Nothing is processed or sent on the connection for a time, not even a TLS alert; then it is closed."
    case .stall: "The TLS handshake stops for a time, then an end."
    case .alert: "A TLS alert instead of a handshake."
    case .certificate: "A certificate that a careful client refuses."
    case .pass: "What APNs would say; later rules are not looked at."
    case .choose: "One of several, by one draw over all weights."
    case .sequence: "One after the other, each time the rule fires."
    }
  }
}
