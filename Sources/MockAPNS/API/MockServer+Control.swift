import APNSMockRules
import APNSMockDevices
import APNSMockFaultModel
package import APNSMockFaults
package import APNSMockInbox
package import APNSMockNotation
import APNSMockTLSEngine

extension MockServer {
  /// A part of a server's state that can be reset.
  public enum ResetPart: String, Sendable, CaseIterable {
    /// The received pushes.
    case inbox
    /// The fault rules that were added to those of the profile.
    case rules
    /// The fault profile, its parameters, its seed, whether faults are paused, and the certificate chain of the server.
    case profile
    /// The counters of the fault rules, and the attempt numbers of pushes.
    case counters
    /// The server's clock.
    case clock
    /// The known apps, the devices, and device tokens.
    case devices
    /// The broadcast channels.
    case channels
  }
}

extension ServerState {
  /// Restores parts of the initial state.
  package func reset(_ parts: Set<MockServer.ResetPart>) {
    if parts.contains(.rules) { faults.removeRules() }
    if parts.contains(.profile) {
      faults.restoreProfile()
      // Cannot fail: this chain exists since the start.
      try? chain.use(.current)
    }
    if parts.contains(.counters) { resetCounters() }
    if parts.contains(.clock) { clock.runReal() }
    if parts.contains(.devices) { resetDevices() }
    if parts.contains(.channels) { resetChannels() }
    // Report the reset once, after everything is done: together with emptying the inbox, otherwise as an event of
    // its own.
    let names = MockServer.ResetPart.allCases.filter { parts.contains($0) }.map(\.rawValue)
    if parts.contains(.inbox) {
      inbox.archiveForRuns(.allKinds, by: finalRulebook)
      inbox.removeAll(reset: names)
    } else if !names.isEmpty {
      events.append(.reset) { $0.member("reset", names) }
    }
  }
}

extension ServerState {
  /// Resets the pushes in a scope: removes them, and further attempts of them count as first ones. Nothing outside of
  /// the scope changes.
  ///
  /// - Parameters:
  ///   - scope: The pushes.
  ///   - query: The query that `scope` was parsed from, for the event log.
  /// - Returns: The number of pushes removed.
  /// - Throws: `FilterError` if the scope exceeds the work limit; `CancellationError` if the task was cancelled.
  package func reset(_ scope: Selection, query: String) async throws -> Int {
    faults.removeRules(scope: query)
    inbox.archiveForRuns(scope, by: finalRulebook)
    let count = try await inbox.resetInSlices(scope)
    events.append(.reset) { writer in
      writer.member("reset", [MockServer.ResetPart.inbox.rawValue])
      writer.member("scope", query)
    }
    return count
  }
}

extension ServerState {
  /// Adds a rule, or replaces the one with its name.
  ///
  /// - Parameter timeToLive: The time after which the rule is removed; nil for that of its definition.
  /// - Throws: `FilterError` if the rule cannot be limited to its scope or run.
  package func add(
    _ definition: AddedRuleDefinition, timeToLive: Duration? = nil
  ) throws(FilterError) -> InsertionResult {
    let binding = try binding(scope: definition.scope, run: definition.run)
    try binding.check(definition.rule)
    let result = faults.add(definition.rule, boundTo: binding, timeToLive: timeToLive ?? definition.ttl)
    runsDidChange()
    return result
  }

  /// Returns what limits rules to the pushes of a scope, of a run, or of both.
  ///
  /// - Throws: `FilterError` for an invalid scope, or a run that is not open.
  package func binding(scope: String?, run id: String?) throws(FilterError) -> RuleBinding {
    let run = id.flatMap { inbox.runs.run($0) }
    if let id, run == nil || run?.endedAt != nil {
      throw FilterError(field: "run", value: id, hint: "Use the id of an open run; GET /api/v1/runs lists them.")
    }
    return try RuleBinding(scope: scope, run: id, runScope: run?.scope)
  }

  /// Adapts the rules that are bound to runs.
  package func runsDidChange() { faults.follow { inbox.runs.open } }
}

extension MockServer {
  // MARK: - Reset

  /// Restores parts of the initial state, for example before each test. Trusted keys are kept.
  ///
  /// - Parameter parts: The parts to reset, by default all.
  public func reset(_ parts: Set<ResetPart> = Set(ResetPart.allCases)) { state.reset(parts) }

  // MARK: - Faults

  /// Activates a fault profile. Added rules stay active.
  ///
  /// - Parameters:
  ///   - reference: A built-in profile or a file, with parameters if needed: `flaky-503`, `flaky-503?rate=0.4`,
  ///     `./profile.yaml`.
  ///   - seed: The seed of the draws; the same seed repeats the same faults. Nil for the profile's or the
  ///     server's seed.
  ///   - timeToLive: The time after which no profile is active; nil for never.
  /// - Throws: `MockServerError` for an unknown profile, an unknown parameter or an invalid file.
  public func useProfile(
    _ reference: String, seed: UInt64? = nil, timeToLive: Duration? = nil
  ) throws(MockServerError) {
    let profile = try state.faults.library.load().selected(reference)
    state.faults.use(profile, seed: seed, timeToLive: timeToLive)
  }

  /// Deactivates the fault profile. Added rules stay active.
  public func deactivateProfile() { state.faults.useHealthy() }

  /// Adds a fault rule, or replaces the added rule of the same name.
  ///
  /// - Parameters:
  ///   - rule: The rule in YAML or JSON, such as `{"do": {"respond": {"status": 503}}, "trigger": {"every": 3}}`.
  ///   - timeToLive: The time after which the rule is removed; nil for the rule's `ttl`, otherwise never.
  /// - Returns: The rule's name, generated if the rule has none.
  /// - Throws: `MockServerError` for an invalid rule or if 1000 rules are active.
  @discardableResult
  public func addRule(_ rule: String, timeToLive: Duration? = nil) throws(MockServerError) -> String {
    let definition: AddedRuleDefinition
    do {
      definition = try state.faults.parseRule(rule)
    } catch {
      throw MockServerError(error)
    }
    let result: InsertionResult
    do {
      result = try state.add(definition, timeToLive: timeToLive)
    } catch {
      throw MockServerError(.invalidInput, "\(error.message). \(error.hint)")
    }
    guard result != .limitReached else {
      throw MockServerError(.limitReached, "\(FaultControl.ruleLimit) rules are active. Remove some.")
    }
    return definition.rule.name
  }

  /// Adds a fault rule, or replaces the added rule of the same name.
  ///
  /// - Returns: The rule's name, generated if the rule has none.
  /// - Throws: `MockServerError` for an invalid rule or if 1000 rules are active.
  @discardableResult
  public func addRule(_ rule: Rule, timeToLive: Duration? = nil) throws(MockServerError) -> String {
    try addRule(rule.json, timeToLive: timeToLive)
  }

  /// Removes an added rule. Does nothing if there is none of that name.
  public func removeRule(_ name: String) { state.faults.removeRule(name) }

  /// Pauses fault injection. The active profile and rules are kept.
  public func pauseFaults() { state.faults.setPaused(true) }

  /// Resumes fault injection.
  public func resumeFaults() { state.faults.setPaused(false) }

  // MARK: - Devices

  /// Unregisters a device token, as if the app were removed at the server's current time: pushes get 410
  /// `Unregistered`.
  ///
  /// - Parameters:
  ///   - device: The device token in hexadecimal.
  ///   - topic: The only topic concerned; nil for all.
  /// - Throws: `MockServerError` for an invalid token, or if `MockServer.Configuration.maxDevices` are registered.
  public func unregister(device: String, topic: String? = nil) throws(MockServerError) {
    try set(device, .unregistered, topic)
  }

  /// Registers a device token: pushes to it are accepted, with `topic` only for that topic. Device tokens that are
  /// neither registered nor unregistered accept pushes for all topics.
  ///
  /// - Parameters:
  ///   - device: The device token in hexadecimal.
  ///   - topic: The only topic of the device token; nil for all.
  /// - Throws: `MockServerError` for an invalid token, or if `MockServer.Configuration.maxDevices` are registered.
  public func register(device: String, topic: String? = nil) throws(MockServerError) {
    try set(device, .online, topic)
  }

  private func set(_ token: String, _ tokenState: SingleToken.State, _ topic: String?) throws(MockServerError) {
    guard DeviceToken.isWellFormed(token) else {
      throw MockServerError(
        .invalidInput,
        "\"\(token.prefix(80))\" is not a device token. It is an even number of hexadecimal digits, 2 to 400 of them.")
    }
    do {
      try state.devices.set(SingleToken(token: token, topic: topic, state: tokenState, since: state.clock.now))
    } catch {
      throw MockServerError(.limitReached, "\(error). \(error.hint)")
    }
  }

  // MARK: - Clock and keys

  /// Moves the server's clock, which determines the age of provider tokens and the timestamps of 410 responses.
  ///
  /// - Parameter duration: The time to move by; negative to move back.
  public func advanceClock(by duration: Duration) {
    state.clock.advance(by: duration)
    state.deliveryControl.advanceAndWait()
  }

  /// Stops the server's clock until `resumeClock()`. It can still be advanced.
  public func freezeClock() { state.clock.freeze() }

  /// Returns the server's clock to the machine's time.
  public func resumeClock() {
    state.clock.runReal()
    state.deliveryControl.advanceAndWait()
  }

  /// Trusts a provider key in addition to that of the certificate folder, for all topics.
  ///
  /// - Parameters:
  ///   - id: The key id: ten letters and digits.
  ///   - teamID: The team id: ten letters and digits.
  ///   - publicKey: The public key in PEM, from `openssl pkey -in AuthKey_ID.p8 -pubout`.
  /// - Throws: `MockServerError` for an invalid key or id, or if 1000 keys are trusted.
  public func trustKey(id: String, teamID: String, publicKey: String) throws(MockServerError) {
    for (name, text) in [("key id", id), ("team id", teamID)] where !ProviderKeysFile.isIdentifier(text) {
      throw MockServerError(.invalidInput, "the \(name) \"\(text.prefix(80))\" is not ten letters and digits")
    }
    let key: ES256PublicKey
    do {
      key = try ES256PublicKey(pem: publicKey)
    } catch {
      throw MockServerError(.invalidInput, "the public key is invalid: \(error)")
    }
    guard state.keys.add(TrustedKey(keyID: id, teamID: teamID, publicKey: key)) != .limitReached else {
      throw MockServerError(.limitReached, "\(TrustedKeySet.limit) keys are trusted, which is the limit")
    }
    state.didChange(key: id)
  }
}
