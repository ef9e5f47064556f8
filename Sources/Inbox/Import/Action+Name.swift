internal import Faults

extension Action.Name {
  /// An action of this name with placeholder parameters, because records contain only the name.
  var bare: Action {
    switch self {
    case .respond: .respond(Action.Answer(status: 0, reason: nil))
    case .delay: .delay(.fixed(.zero))
    case .hang: .hang(for: nil, endWith: .nothing)
    case .resetStream: .resetStream(code: 0)
    case .resetConnection: .resetConnection(afterAccepting: false)
    case .goAway: .goAway(Action.GoAwayOrder())
    case .close: .close
    case .drain: .drain(for: .zero, respond: Action.Answer(status: 0, reason: nil))
    case .loseAnswer: .loseAnswer(endWith: .nothing)
    case .dribble: .dribble(chunks: 0, over: .zero)
    case .splitBody: .splitBody
    case .truncateBody: .truncateBody
    case .garbleBody: .garbleBody
    case .dropHeader: .dropHeader(name: "")
    case .emptyErrorBody: .emptyErrorBody
    case .changeID: .changeID(.upperCase)
    case .starveWindow: .starveWindow(for: nil)
    case .settings: .settings(Action.SettingsOrder())
    case .ignorePings: .ignorePings(for: nil)
    case .refuse: .refuse
    case .silence: .silence(for: nil)
    case .stall: .stall(for: nil, endWith: .nothing)
    case .alert: .alert(code: 0)
    case .certificate: .certificate(.expired)
    case .pass: .pass
    case .choose: .choose([])
    case .sequence: .sequence(key: .rule, steps: [], onEnd: .stay)
    }
  }
}
