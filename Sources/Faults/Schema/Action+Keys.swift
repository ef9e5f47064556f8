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
    case .respond: "Respond with another status or reason than APNs."
    case .delay: "Delay the response."
    case .hang: "Send no response for a time, then end the stream or connection."
    case .resetStream: "RST_STREAM."
    case .resetConnection: "TCP RST."
    case .goAway: "GOAWAY."
    case .close: "FIN without GOAWAY."
    case .drain: "Reject all pushes of the connection for a time, then send GOAWAY and close."
    case .loseAnswer: "Accept the push, but never send the response."
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
