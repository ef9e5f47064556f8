@testable import MockAPNS
import APNSMockFaultModel
import Testing

@Suite struct ConnectionFaultsTests {
  /// Returns the steps of an action or of a timer in short.
  private static func words(_ steps: [ConnectionStateMachine.Step]) -> [String] {
    steps.map { step in
      switch step {
      case .sendGoAway(_, let lastStream, let sendsNotice): "goaway \(lastStream)\(sendsNotice ? " twice" : "")"
      case .sendGoAwayAndClose: "goaway and close"
      case .end(let ending): "end: \(ending)"
      case .close: "close"
      case .withholdWindow(let isWithheld): isWithheld ? "withhold" : "renew"
      case .ignorePings(let isIgnoring): isIgnoring ? "ignore" : "acknowledge"
      case .closeSocket: "close socket"
      case .announce: "settings"
      case .respondUntilShutdown: "respond"
      case .continuePush(let stream): "continue \(stream)"
      case .continueHandshake(let defect): "handshake\(defect == nil ? "" : " with a defective certificate")"
      case .sendSettings(let isUsable): isUsable ? "first settings" : "first settings and goaway"
      case .evaluateRules: "evaluate"
      case .wait(let time, _): "wait \(time.components.seconds)"
      }
    }
  }

  private static func timer(_ steps: [ConnectionStateMachine.Step]) -> ConnectionStateMachine.FaultTimer? {
    steps.lazy.compactMap { if case .wait(_, let timer) = $0 { timer } else { nil } }.first
  }

  /// An action that lasts, how it begins, and the steps at its end.
  struct Lasting: Sendable {
    var action: @Sendable (Duration?) -> ConnectionAction
    var begins: [String]
    var ends: [String]
  }

  static let lasting = [
    Lasting(action: { .starveWindow(for: $0) }, begins: ["withhold"], ends: ["renew"]),
    Lasting(action: { .ignorePings(for: $0) }, begins: ["ignore"], ends: ["acknowledge"]),
  ]

  /// Durations of overlapping actions in seconds, and the number of the timer to elapse that ends the effect; nil for
  /// never.
  @Test(
    arguments: lasting,
    [([1], 1), ([1, 2], 2), ([2, 1], 2), ([1, 2, 3], 3), ([2, nil], nil), ([nil, 2], nil), ([1, 1], 2)]
      as [([Int?], Int?)])
  func overlappingActionsEndWithTheLast(lasting: Lasting, row: ([Int?], Int?)) {
    var machine = ConnectionStateMachine(state: .open(.serving))
    var timers: [ConnectionStateMachine.FaultTimer] = []
    for seconds in row.0 {
      let steps = machine.begin(lasting.action(seconds.map { .seconds($0) }), lastReceivedStream: 1, now: 0)
      #expect(Self.words(steps) == lasting.begins + (seconds.map { ["wait \($0)"] } ?? []))
      if let timer = Self.timer(steps) { timers.append(timer) }
    }
    for (number, timer) in timers.enumerated() {
      let steps = Self.words(machine.elapsed(timer))
      #expect(steps == (number + 1 == row.1 ? lasting.ends : []))
    }
  }

  /// After the effect has ended, an action begins it again.
  @Test(arguments: lasting)
  func effectBeginsAgain(lasting: Lasting) throws {
    var machine = ConnectionStateMachine(state: .open(.serving))
    for _ in 1...3 {
      let steps = machine.begin(lasting.action(.seconds(1)), lastReceivedStream: 1, now: 0)
      #expect(Self.words(machine.elapsed(try #require(Self.timer(steps)))) == lasting.ends)
    }
  }

  @Test(
    arguments: [
      (
        .goAway(.init(lastStream: .all, closeAfter: .seconds(3))), ["goaway \(Int32.max)", "wait 3"],
        ["close"]
      ),
      (.goAway(.init(twice: true, closeAfter: nil)), ["goaway 7 twice"], nil), (.close, ["end: close"], nil),
      (.reset, ["end: reset"], nil),
      (.silence(for: .seconds(2)), ["end: silence", "wait 2"], ["close socket"]),
      (.silence(for: nil), ["end: silence"], nil),
      (.announce(.init(after: .seconds(1))), ["wait 1"], ["settings"]), (.announce(.init()), ["settings"], nil),
      (
        .respondThenShutDown(Injection(rule: "drain", action: .close, continues: false), for: .seconds(4)),
        ["respond", "wait 4"], ["goaway and close"]
      ), (.continuePush(stream: 5, after: .seconds(1)), ["wait 1"], ["continue 5"]),
      (.sendGoAwayAndClose(.idle), ["goaway and close"], nil),
    ] as [(ConnectionAction, [String], [String]?)])
  func steps(action: ConnectionAction, begins: [String], ends: [String]?) {
    var machine = ConnectionStateMachine(state: .open(.serving))
    let steps = machine.begin(action, lastReceivedStream: 7, now: 0)
    #expect(Self.words(steps) == begins)
    // Written before a time elapses.
    if machine.writingStarted() {
      _ = machine.roundWritten(isComplete: true, isFinished: false, hasPendingWork: true)
    }
    #expect(Self.timer(steps).map { Self.words(machine.elapsed($0)) } == ends)
  }

  /// The states in which the end of a wait has steps.
  @Test(
    arguments: [
      (.closeAfterGoAway, ["close"], nil), (.shutdown, ["goaway and close"], nil),
      (.silence, ["close socket"], [.silenced]),
      (.announcement(.init()), ["settings"], [.open(.serving), .open(.draining)]),
      (.delayedPush(stream: 5), ["continue 5"], [.open(.serving), .open(.draining)]),
      (.ruleEvaluation, ["evaluate"], [.open(.serving), .open(.draining)]),
      (.handshake(.expired), ["handshake with a defective certificate"], [.handshakeDelayed]),
      (.handshake(nil), ["handshake"], [.handshakeDelayed]),
      (.settings(isUsable: true), ["first settings"], [.settingsDelayed]),
      (.settings(isUsable: false), ["first settings and goaway"], [.settingsDelayed]),
    ] as [(ConnectionStateMachine.FaultTimer, [String], [ConnectionStateMachine.State]?)])
  func elapsedTimers(row: (ConnectionStateMachine.FaultTimer, [String], [ConnectionStateMachine.State]?)) {
    for state in ConnectionStateMachineTests.states {
      var machine = ConnectionStateMachine(state: state)
      #expect(Self.words(machine.elapsed(row.0)) == (row.2?.contains(state) ?? true ? row.1 : []), "\(state)")
    }
  }
}
