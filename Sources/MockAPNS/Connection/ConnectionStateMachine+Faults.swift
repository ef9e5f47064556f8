import APNSMockFaultModel
internal import APNSMockNotation

/// The faults of a connection, and the steps of which each action on it consists. `ConnectionHandler` performs the steps,
/// `Simulation` computes what they lead to.
extension ConnectionStateMachine {
  /// One step of an action. The steps of an action are performed in their order, without a pause, and none of them
  /// writes: the frames of all steps are written after them.
  enum Step {
    /// Send GOAWAY; `sendsNotice` for one with last stream 2³¹−1 before it.
    case sendGoAway(Action.GoAwayParameters, lastStream: Int32, sendsNotice: Bool)
    /// Send GOAWAY for this reason and close when no stream is open any more.
    case sendGoAwayAndClose(ConnectionCloseReason)
    /// End the connection after the submitted responses: the state is `ending`.
    case end(Ending)
    /// Close the connection after the GOAWAY of a fault.
    case close
    /// Start or stop to withhold WINDOW_UPDATE.
    case withholdWindow(Bool)
    /// Start or stop to ignore PING.
    case ignorePings(Bool)
    /// Close the socket: the connection is silenced.
    case closeSocket
    /// Send SETTINGS.
    case announce(Action.SettingsParameters)
    /// Give every push this response.
    case respondUntilShutdown(Injection)
    /// Continue a delayed push.
    case continuePush(stream: Int32)
    /// Continue the TLS handshake with the usual certificate or a defective one.
    case continueHandshake(Action.CertificateDefect?)
    /// Send the first SETTINGS, and GOAWAY if the client certificate is not usable.
    case sendSettings(isUsable: Bool)
    /// Evaluate the rules of the injection point `connection`.
    case evaluateRules
    /// Call `elapsed` after a time.
    case wait(Duration, FaultTimer)
  }

  /// What a connection waits for because of a fault. Any number of them may be scheduled.
  enum FaultTimer {
    case closeAfterGoAway
    case shutdown
    case windowStarvation
    case ignoredPings
    case silence
    case announcement(Action.SettingsParameters)
    case delayedPush(stream: Int32)
    case handshake(Action.CertificateDefect?)
    case settings(isUsable: Bool)
    case ruleEvaluation
  }

  /// The effects of faults that last for a time.
  struct FaultEffects {
    var windowStarvation = OverlappingEffect()
    var ignoredPings = OverlappingEffect()
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

  /// Begins an action.
  ///
  /// - Parameters:
  ///   - lastReceivedStream: The highest stream that the client has opened.
  ///   - now: Monotonic nanoseconds.
  mutating func begin(_ action: ConnectionAction, lastReceivedStream: Int32, now: MonotonicTime) -> [Step] {
    switch action {
    case .sendGoAwayAndClose(let reason): return [.sendGoAwayAndClose(reason)]
    case .goAway(let parameters, let lastStream):
      let before = processedStreams
      let last =
        lastStream ?? before.lastStream(of: parameters, causedBy: .connection(lastReceivedStream: lastReceivedStream))
      faultSentGoAway(lastStream: last, now: now)
      let sendsNotice = parameters.twice && last != .max && before.lastAccepted == .max
      let goAway = Step.sendGoAway(parameters, lastStream: last, sendsNotice: sendsNotice)
      return [goAway] + (parameters.closeAfter.map { [.wait($0, .closeAfterGoAway)] } ?? [])
    case .close: return beginEnd(.close)
    case .reset: return beginEnd(.reset)
    // No rule is evaluated on a silenced connection, so silence does not overlap.
    case .silence(let time): return beginEnd(.silence) + Self.wait(time, .silence)
    case .starveWindow(let time):
      faultEffects.windowStarvation.begin()
      return [.withholdWindow(true)] + Self.wait(time, .windowStarvation)
    case .ignorePings(let time):
      faultEffects.ignoredPings.begin()
      return [.ignorePings(true)] + Self.wait(time, .ignoredPings)
    case .announce(let parameters):
      guard parameters.after > .zero else { return [.announce(parameters)] }
      return [.wait(parameters.after, .announcement(parameters))]
    case .respondThenShutDown(let injection, let time):
      return [.respondUntilShutdown(injection), .wait(time, .shutdown)]
    case .continuePush(let stream, let time): return [.wait(time, .delayedPush(stream: stream))]
    }
  }

  private mutating func beginEnd(_ ending: Ending) -> [Step] {
    faultEndsConnection(ending)
    return [.end(ending)]
  }

  /// Returns the steps after a time has elapsed.
  mutating func elapsed(_ timer: FaultTimer) -> [Step] {
    switch timer {
    case .closeAfterGoAway: [.close]
    case .shutdown: [.sendGoAwayAndClose(.shutdown)]
    case .windowStarvation: faultEffects.windowStarvation.end() ? [.withholdWindow(false)] : []
    case .ignoredPings: faultEffects.ignoredPings.end() ? [.ignorePings(false)] : []
    case .silence: state == .silenced ? [.closeSocket] : []
    case .announcement(let parameters): isOpen ? [.announce(parameters)] : []
    case .delayedPush(let stream): isOpen ? [.continuePush(stream: stream)] : []
    case .handshake(let defect): handshakeDelayElapsed() ? [.continueHandshake(defect)] : []
    case .settings(let isUsable): settingsDelayElapsed() ? [.sendSettings(isUsable: isUsable)] : []
    case .ruleEvaluation: isOpen ? [.evaluateRules] : []
    }
  }

  private static func wait(_ time: Duration?, _ timer: FaultTimer) -> [Step] { time.map { [.wait($0, timer)] } ?? [] }
}

/// The first SETTINGS of a connection, as far as the rules at the injection point `settings` determine them.
struct FaultedSettings {
  /// The values and the delay of the first frame; nil if no rule changes it.
  private(set) var first: Action.SettingsParameters?
  /// The frames that follow, each with the time after the connection was opened.
  private(set) var following: [(parameters: Action.SettingsParameters, after: Duration)] = []

  /// Combines the injections of all rules that fired. Of the delays, the longest applies.
  init(_ injections: Injections) {
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
