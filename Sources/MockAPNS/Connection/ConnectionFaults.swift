import APNSMockFaultModel
import APNSMockFaults
internal import APNSMockNotation

/// The fault actions that last for a time on a connection, and the steps of which each action on a connection consists.
/// Performs no I/O and reads no clock: `ConnectionHandler` performs the steps, `Simulation` computes what they lead to.
struct ConnectionFaults {
  /// One step of an action. A handler performs the steps of an action in their order, without a pause.
  enum Step {
    /// Write the submitted responses.
    case flush
    /// Send GOAWAY; `sendsNotice` for one with last stream 2³¹−1 before it.
    case sendGoAway(Action.GoAwayParameters, lastStream: Int32, sendsNotice: Bool)
    /// Send GOAWAY for this reason and close when no stream is open any more.
    case sendGoAwayAndClose(ConnectionCloseReason)
    /// Write the last frames and FIN, after a GOAWAY or without one.
    case close(afterGoAway: Bool)
    /// Send RST.
    case reset
    /// Start or stop to withhold WINDOW_UPDATE.
    case withholdWindow(Bool)
    /// Start or stop to ignore PING.
    case ignorePings(Bool)
    /// Discard what is received and send nothing, if the connection is open.
    case silence
    /// Close the socket, if the connection is silenced.
    case closeSilenced
    /// Send SETTINGS.
    case announce(Action.SettingsParameters)
    /// Give every push this response.
    case respondUntilShutdown(Injection)
    /// Continue a delayed push.
    case continuePush(stream: Int32)
    /// Call `elapsed` after a time.
    case wait(Duration, Timer)
  }

  /// What a connection waits for.
  enum Timer {
    case closeAfterGoAway
    case shutdown
    case windowStarvation
    case ignoredPings
    case silence
    case announcement(Action.SettingsParameters)
    case delayedPush(stream: Int32)
  }

  /// An effect of several actions that may overlap. It ends when the last of them ends.
  struct OverlappingEffect: Equatable {
    private var active = 0

    /// Begins with one more action.
    mutating func begin() { active += 1 }

    /// Ends one action and returns whether it was the last.
    mutating func end() -> Bool {
      active -= 1
      return active == 0
    }
  }

  private var windowStarvation = OverlappingEffect()
  private var ignoredPings = OverlappingEffect()

  /// Begins an action.
  ///
  /// - Parameters:
  ///   - lastReceivedStream: The highest stream that the client has opened.
  ///   - now: Monotonic nanoseconds.
  mutating func begin(
    _ action: ConnectionAction, on stateMachine: inout ConnectionStateMachine, lastReceivedStream: Int32,
    now: MonotonicTime
  ) -> [Step] {
    switch action {
    case .sendGoAwayAndClose(let reason): return [.sendGoAwayAndClose(reason)]
    case .goAway(let parameters, let lastStream):
      let before = stateMachine.processedStreams
      let last =
        lastStream ?? before.lastStream(of: parameters, causedBy: .connection(lastReceivedStream: lastReceivedStream))
      stateMachine.faultSentGoAway(lastStream: last, now: now)
      let sendsNotice = parameters.twice && last != .max && before.lastAccepted == .max
      let goAway = Step.sendGoAway(parameters, lastStream: last, sendsNotice: sendsNotice)
      return [goAway] + (parameters.closeAfter.map { [.wait($0, .closeAfterGoAway)] } ?? [])
    case .close:
      stateMachine.faultEndsConnection()
      return [.flush, .close(afterGoAway: false)]
    case .reset:
      stateMachine.faultEndsConnection()
      return [.flush, .reset]
    case .starveWindow(let time):
      windowStarvation.begin()
      return [.withholdWindow(true)] + Self.wait(time, .windowStarvation)
    case .ignorePings(let time):
      ignoredPings.begin()
      return [.ignorePings(true)] + Self.wait(time, .ignoredPings)
    // No rule is evaluated on a silenced connection, so silence does not overlap.
    case .silence(let time): return [.flush, .silence] + Self.wait(time, .silence)
    case .announce(let parameters):
      guard parameters.after > .zero else { return [.announce(parameters)] }
      return [.wait(parameters.after, .announcement(parameters))]
    case .respondThenShutDown(let injection, let time):
      return [.respondUntilShutdown(injection), .wait(time, .shutdown)]
    case .continuePush(let stream, let time): return [.wait(time, .delayedPush(stream: stream))]
    }
  }

  /// Returns the steps after a time has elapsed.
  mutating func elapsed(_ timer: Timer) -> [Step] {
    switch timer {
    case .closeAfterGoAway: [.close(afterGoAway: true)]
    case .shutdown: [.sendGoAwayAndClose(.shutdown)]
    case .windowStarvation: windowStarvation.end() ? [.withholdWindow(false), .flush] : []
    case .ignoredPings: ignoredPings.end() ? [.ignorePings(false)] : []
    case .silence: [.closeSilenced]
    case .announcement(let parameters): [.announce(parameters)]
    case .delayedPush(let stream): [.continuePush(stream: stream)]
    }
  }

  private static func wait(_ time: Duration?, _ timer: Timer) -> [Step] { time.map { [.wait($0, timer)] } ?? [] }
}

/// The first SETTINGS of a connection, as far as the rules at the injection point `settings` determine them.
struct FaultedSettings {
  /// The values and the delay of the first frame; nil if no rule changes it.
  private(set) var first: Action.SettingsParameters?
  /// The frames that follow, each with the time after the connection was opened.
  private(set) var following: [(parameters: Action.SettingsParameters, after: Duration)] = []

  /// Combines the injections of all rules that fired. Of the delays, the longest applies.
  init(_ injections: [Injection]) {
    var delay = Duration.zero
    for case .settings(let parameters) in injections.additions.map(\.action) {
      delay = max(delay, parameters.delay)
      if parameters.after > .zero {
        // `after` counts from the first SETTINGS frame, which this rule may delay.
        following.append((parameters, parameters.after + parameters.delay))
      } else {
        first = parameters
      }
    }
    if delay > .zero {
      first = first ?? Action.SettingsParameters()
      first?.delay = delay
    }
  }
}
