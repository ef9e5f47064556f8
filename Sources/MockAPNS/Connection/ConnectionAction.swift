package import APNSMockFaultModel

/// An action on a whole connection, caused by a push, a rule or the admin API.
package enum ConnectionAction: Sendable {
  /// Send GOAWAY for this reason, then close.
  case sendGoAwayAndClose(ConnectionCloseReason)
  /// Send GOAWAY. `lastStream` is nil if no push triggered it: `before_this` and `this` then both name the last stream
  /// received.
  case goAway(Action.GoAwayParameters, lastStream: Int32? = nil)
  /// Send FIN without GOAWAY.
  case close
  /// Reset the TCP connection.
  case reset
  /// Send no WINDOW_UPDATE for a time; nil for the rest of the connection.
  case starveWindow(for: Duration?)
  /// Do not acknowledge PING frames for a time; nil for the rest of the connection.
  case ignorePings(for: Duration?)
  /// Discard what is received and send nothing for a time, then close; nil for the longest time that the profile's
  /// limits allow.
  case silence(for: Duration?)
  /// Announce other SETTINGS.
  case announce(Action.SettingsParameters)
  /// Give every push the response of this injection for a time, then shut down the connection.
  case respondThenShutDown(Injection, for: Duration)
  /// Continue a delayed push after a time.
  case continuePush(stream: Int32, after: Duration)
}

extension ConnectionAction {
  /// Whether the action may end the connection, so that other pushes on it are not processed or get no response.
  var mayEndConnection: Bool {
    switch self {
    case .sendGoAwayAndClose, .goAway, .close, .reset, .silence, .respondThenShutDown: true
    case .starveWindow, .ignorePings, .announce, .continuePush: false
    }
  }

  /// Creates the action of a rule at the injection point `connection`; nil for other actions.
  init?(_ injection: Injection) {
    switch injection.action {
    case .goAway(let parameters): self = .goAway(parameters)
    case .resetConnection: self = .reset
    case .close: self = .close
    case .respondThenShutDown(let time, let response):
      self = .respondThenShutDown(injection.replacingAction(with: .respond(response)), for: time)
    case .starveWindow(let time): self = .starveWindow(for: time)
    case .settings(let parameters): self = .announce(parameters)
    case .ignorePings(let time): self = .ignorePings(for: time)
    case .silence(let time): self = .silence(for: time)
    default: return nil
    }
  }
}
