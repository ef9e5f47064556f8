import Faults

/// Something that has to happen to a whole connection because of a push, a rule, or an order over the admin API.
enum ConnectionEffect {
  /// It ends as the table of farewells has it.
  case leave(Farewell)
  /// GOAWAY that names this last stream.
  case goAway(Action.GoAwayOrder, lastStream: Int32)
  /// FIN without a word.
  case close
  /// TCP RST.
  case reset
  /// No WINDOW_UPDATE for a time; nil for ever.
  case starveWindow(for: Duration?)
  /// No acknowledgement of PINGs for a time; nil for ever.
  case ignorePings(for: Duration?)
  /// Nothing is processed or sent any more for a time, then the connection closes; nil for ever.
  case silence(for: Duration?)
  /// Other SETTINGS.
  case announce(Action.SettingsOrder)
  /// Every push gets this answer for a time, then the connection ends.
  case drain(Injection, for: Duration)
  /// A held push goes on after a time.
  case wake(stream: Int32, after: Duration)
}
