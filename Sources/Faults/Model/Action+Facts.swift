/// The name of each action, its injection points, and whether rule evaluation continues after it.
extension Action {
  /// The name of an action in a profile file, in the order of the documentation.
  public enum Name: String, CaseIterable, Sendable {
    case respond, delay, hang
    case resetStream = "reset_stream"
    case resetConnection = "reset_connection"
    case goAway = "goaway"
    case close, drain
    case loseAnswer = "lose_answer"
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
    public var moments: Set<Moment> {
      switch self {
      case .respond, .pass: [.request]
      case .delay, .hang, .resetStream: [.request, .response]
      case .resetConnection: [.request, .connection]
      case .goAway, .close: [.request, .response, .connection]
      case .drain: [.connection]
      case .loseAnswer, .dribble, .splitBody, .truncateBody, .garbleBody, .dropHeader, .emptyErrorBody, .changeID:
        [.response]
      case .starveWindow: [.request, .connection]
      case .settings: [.settings, .connection]
      case .ignorePings: [.connection]
      case .refuse: [.accept]
      case .silence: [.accept, .connection]
      case .stall, .alert, .certificate: [.tls]
      case .choose, .sequence: Set(Moment.allCases)
      }
    }

    /// Whether evaluation continues with the next rule after this action, unless the rule's `then` overrides it; nil
    /// for `choose` and `sequence`, where it depends on the chosen action.
    public var continues: Bool? {
      switch self {
      case .delay, .dribble, .splitBody, .truncateBody, .garbleBody, .dropHeader, .emptyErrorBody, .changeID,
        .starveWindow, .settings, .ignorePings, .certificate:
        true
      case .choose, .sequence: nil
      default: false
      }
    }
  }

  /// The action's name.
  public var name: Name {
    switch self {
    case .respond: .respond
    case .delay: .delay
    case .hang: .hang
    case .resetStream: .resetStream
    case .resetConnection: .resetConnection
    case .goAway: .goAway
    case .close: .close
    case .drain: .drain
    case .loseAnswer: .loseAnswer
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
