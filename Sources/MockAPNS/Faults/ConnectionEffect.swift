import Faults

/// An action on a whole connection, caused by a push, a rule or a command over the admin API.
enum ConnectionEffect {
  /// Send GOAWAY for this reason, then close.
  case leave(Farewell)
  /// Send GOAWAY with this last stream.
  case goAway(Action.GoAwayOrder, lastStream: Int32)
  /// Send FIN without GOAWAY.
  case close
  /// Reset the TCP connection.
  case reset
  /// Send no WINDOW_UPDATE for a time; nil for ever.
  case starveWindow(for: Duration?)
  /// Do not acknowledge PING frames for a time; nil for ever.
  case ignorePings(for: Duration?)
  /// Process and send nothing for a time, then close; nil for ever.
  case silence(for: Duration?)
  /// Announce other SETTINGS.
  case announce(Action.SettingsOrder)
  /// Answer every push with an injected response for a time, then shut down the connection.
  case drain(Injection, for: Duration)
  /// Continue a delayed push after a time.
  case wake(stream: Int32, after: Duration)
}
