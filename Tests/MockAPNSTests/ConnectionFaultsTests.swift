@testable import MockAPNS
import APNSMockFaultModel
import Testing

@Suite struct ConnectionFaultsTests {
  /// Returns the steps of an action or of a timer in short.
  private static func words(_ steps: [ConnectionFaults.Step]) -> [String] {
    steps.map { step in
      switch step {
      case .flush: "flush"
      case .sendGoAway(_, let lastStream, let sendsNotice): "goaway \(lastStream)\(sendsNotice ? " twice" : "")"
      case .sendGoAwayAndClose: "goaway and close"
      case .close(let afterGoAway): afterGoAway ? "close after goaway" : "close"
      case .reset: "reset"
      case .withholdWindow(let isWithheld): isWithheld ? "withhold" : "renew"
      case .ignorePings(let isIgnoring): isIgnoring ? "ignore" : "acknowledge"
      case .silence: "silence"
      case .closeSilenced: "close silenced"
      case .announce: "settings"
      case .respondUntilShutdown: "respond"
      case .continuePush(let stream): "continue \(stream)"
      case .wait(let time, _): "wait \(time.components.seconds)"
      }
    }
  }

  private static func timer(_ steps: [ConnectionFaults.Step]) -> ConnectionFaults.Timer? {
    steps.lazy.compactMap { if case .wait(_, let timer) = $0 { timer } else { nil } }.first
  }

  /// An action that lasts, how it begins, and the steps at its end.
  struct Lasting: Sendable {
    var action: @Sendable (Duration?) -> ConnectionAction
    var begins: [String]
    var ends: [String]
  }

  static let lasting = [
    Lasting(action: { .starveWindow(for: $0) }, begins: ["withhold"], ends: ["renew", "flush"]),
    Lasting(action: { .ignorePings(for: $0) }, begins: ["ignore"], ends: ["acknowledge"]),
  ]

  /// Durations of overlapping actions in seconds, and the number of the timer to elapse that ends the effect; nil for
  /// never.
  @Test(
    arguments: lasting,
    [([1], 1), ([1, 2], 2), ([2, 1], 2), ([1, 2, 3], 3), ([2, nil], nil), ([nil, 2], nil), ([1, 1], 2)]
      as [([Int?], Int?)])
  func overlappingActionsEndWithTheLast(lasting: Lasting, row: ([Int?], Int?)) {
    var faults = ConnectionFaults()
    var machine = ConnectionStateMachine(state: .open(.serving))
    var timers: [ConnectionFaults.Timer] = []
    for seconds in row.0 {
      let steps = faults.begin(
        lasting.action(seconds.map { .seconds($0) }), on: &machine, lastReceivedStream: 1, now: 0)
      #expect(Self.words(steps) == lasting.begins + (seconds.map { ["wait \($0)"] } ?? []))
      if let timer = Self.timer(steps) { timers.append(timer) }
    }
    for (number, timer) in timers.enumerated() {
      let steps = Self.words(faults.elapsed(timer))
      #expect(steps == (number + 1 == row.1 ? lasting.ends : []))
    }
  }

  /// After the effect has ended, an action begins it again.
  @Test(arguments: lasting)
  func effectBeginsAgain(lasting: Lasting) throws {
    var faults = ConnectionFaults()
    var machine = ConnectionStateMachine(state: .open(.serving))
    for _ in 1...3 {
      let steps = faults.begin(lasting.action(.seconds(1)), on: &machine, lastReceivedStream: 1, now: 0)
      #expect(Self.words(faults.elapsed(try #require(Self.timer(steps)))) == lasting.ends)
    }
  }

  @Test(
    arguments: [
      (
        .goAway(.init(lastStream: .all, closeAfter: .seconds(3))), ["goaway \(Int32.max)", "wait 3"],
        ["close after goaway"]
      ),
      (.goAway(.init(twice: true, closeAfter: nil)), ["goaway 7 twice"], nil), (.close, ["flush", "close"], nil),
      (.reset, ["flush", "reset"], nil),
      (.silence(for: .seconds(2)), ["flush", "silence", "wait 2"], ["close silenced"]),
      (.announce(.init(after: .seconds(1))), ["wait 1"], ["settings"]), (.announce(.init()), ["settings"], nil),
      (
        .respondThenShutDown(Injection(rule: "drain", action: .close, continues: false), for: .seconds(4)),
        ["respond", "wait 4"], ["goaway and close"]
      ), (.continuePush(stream: 5, after: .seconds(1)), ["wait 1"], ["continue 5"]),
      (.sendGoAwayAndClose(.idle), ["goaway and close"], nil),
    ] as [(ConnectionAction, [String], [String]?)])
  func steps(action: ConnectionAction, begins: [String], ends: [String]?) {
    var faults = ConnectionFaults()
    var machine = ConnectionStateMachine(state: .open(.serving))
    let steps = faults.begin(action, on: &machine, lastReceivedStream: 7, now: 0)
    #expect(Self.words(steps) == begins)
    #expect(Self.timer(steps).map { Self.words(faults.elapsed($0)) } == ends)
  }
}
