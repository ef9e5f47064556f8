import Testing

@testable import FaultModel
@testable import Faults

@Suite struct ActionTableTests {
  /// The documented table of actions: the injection points of each, and whether rule evaluation continues after it.
  @Test(
    arguments: [
      (.respond, [.request], false), (.delay, [.request, .response], true), (.hang, [.request, .response], false),
      (.resetStream, [.request, .response], false), (.resetConnection, [.request, .connection], false),
      (.goAway, [.request, .response, .connection], false), (.close, [.request, .response, .connection], false),
      (.respondThenShutDown, [.connection], false), (.loseResponse, [.response], false), (.dribble, [.response], true),
      (.splitBody, [.response], true), (.truncateBody, [.response], true), (.garbleBody, [.response], true),
      (.dropHeader, [.response], true), (.emptyErrorBody, [.response], true),
      (.starveWindow, [.request, .connection], true), (.settings, [.settings, .connection], true),
      (.ignorePings, [.connection], true), (.refuse, [.accept], false), (.silence, [.accept, .connection], false),
      (.stall, [.tls], false), (.alert, [.tls], false), (.certificate, [.tls], true), (.pass, [.request], false),
    ] as [(Action.Name, Set<InjectionPoint>, Bool)])
  func actionTableIsAsDocumented(name: Action.Name, injectionPoints: Set<InjectionPoint>, continues: Bool) {
    #expect(name.injectionPoints == injectionPoints)
    #expect(name.continues == continues)
  }
}
