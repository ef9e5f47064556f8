package import APNSMockRules
internal import APNSMockHTTPMessage
internal import APNSMockNotation

extension Record {
  /// Returns the kinds of the record's findings, in ascending order.
  ///
  /// - Parameter inbox: The inbox of the record; nil to omit findings that depend on other records.
  borrowing func findingKinds(by rulebook: Rulebook, in inbox: Inbox?) -> [Finding.Kind] {
    if let importedFindings { return importedFindings }
    var kinds = inbox?.evidence(by: self, rulebook).map(\.kind) ?? []
    if isNearLimit { kinds.append(.nearLimit) }
    if displayProblem(by: rulebook) != nil { kinds.append(.wouldNotShow) }
    if lacksPushType(by: rulebook) { kinds.append(.missingPushType) }
    if hasPastExpiration { kinds.append(.pastExpiration) }
    if expirationUnit != nil { kinds.append(.expirationInMilliseconds) }
    if isNotStored { kinds.append(.notStored) }
    if hasUndocumentedForm { kinds.append(.channelRequestForm) }
    if isBroadcastWithoutExpiration { kinds.append(.broadcastWithoutExpiration) }
    if hasOtherAlgorithm { kinds.append(.jwtAlgorithm) }
    if hasIgnoredToken { kinds.append(.ignoredToken) }
    if !mistakes(inbox?.knownTargets).isEmpty { kinds.append(.probableMistake) }
    if isOverHTTP1 { kinds.append(.notHTTP2) }
    if outcome == .malformed { kinds.append(.malformedRequest) }
    return kinds
  }

  /// Returns whether the record has a finding of a kind for which `predicate` returns true. Other kinds are not
  /// evaluated.
  borrowing func hasFinding(by rulebook: Rulebook, in inbox: Inbox?, where predicate: (Finding.Kind) -> Bool) -> Bool {
    if let importedFindings { return importedFindings.contains(where: predicate) }
    return inbox?.evidence(by: self, rulebook).contains { predicate($0.kind) } == true
      || predicate(.nearLimit) && isNearLimit
      || predicate(.missingPushType) && lacksPushType(by: rulebook) || predicate(.jwtAlgorithm) && hasOtherAlgorithm
      || predicate(.notHTTP2) && isOverHTTP1 || predicate(.malformedRequest) && outcome == .malformed
      || predicate(.pastExpiration) && hasPastExpiration
      || predicate(.expirationInMilliseconds) && expirationUnit != nil
      || predicate(.notStored) && isNotStored || predicate(.channelRequestForm) && hasUndocumentedForm
      || predicate(.broadcastWithoutExpiration) && isBroadcastWithoutExpiration
      || predicate(.ignoredToken) && hasIgnoredToken
      || predicate(.wouldNotShow) && displayProblem(by: rulebook) != nil
      || predicate(.probableMistake) && !mistakes(inbox?.knownTargets).isEmpty
  }

  /// Returns the findings that follow from this record alone.
  ///
  /// - Parameter known: The devices and topics that the server knows; nil to leave out what follows from them.
  borrowing func ownFindings(by rulebook: Rulebook, _ known: KnownTargets?) -> [Finding] {
    var findings: [Finding] = []
    func add(_ kind: Finding.Kind, _ explanation: String) {
      findings.append(Finding(kind, on: self, explanation: explanation))
    }
    if outcome == .malformed {
      add(.malformedRequest, wireDetails?.violationText ?? "the stream was reset with PROTOCOL_ERROR")
    }
    if isNearLimit {
      let limit = facts.payloadLimit
      add(
        .nearLimit,
        "the payload has \(bodySize) of the \(limit) bytes it may have (\(bodySize * 100 / limit) %): "
          + "\(limit - bodySize) more are left")
    }
    if let displayProblem = displayProblem(by: rulebook) { add(.wouldNotShow, displayProblem.text) }
    if lacksPushType(by: rulebook) { add(.missingPushType, missingTypeText) }
    if hasPastExpiration, let seconds = facts.expiration { add(.pastExpiration, Self.pastExpirationText(seconds)) }
    if let unit = expirationUnit, let number = facts.expiration {
      add(
        .expirationInMilliseconds,
        "apns-expiration \(number) is \(TimestampFormat.text(number / unit.perMillisecond) ?? "a time") in \(unit.name), which APNs "
          + "takes for seconds: send \(number / unit.perMillisecond / 1000)")
    }
    if isNotStored {
      add(
        .notStored,
        facts.expiration == 0
          ? "apns-expiration 0 allows one attempt to deliver the push, and the device was offline"
          : "the push had already expired when it arrived, and the device was offline")
    }
    if hasUndocumentedForm {
      add(
        .channelRequestForm,
        kind == .broadcast
          ? "apns-push-type is \(Explanation.quoted(pushType ?? "")): Apple's samples have liveactivity, and rules \"strict\" reject "
            + "another case"
          : "the body creates the channel in another form than {\"message-storage-policy\":1,\"push-type\":\"LiveActivity\"}: a "
            + "policy as a string or another case of the push type, which rules \"strict\" reject")
    }
    if isBroadcastWithoutExpiration {
      add(
        .broadcastWithoutExpiration,
        "the broadcast has no apns-expiration, which APNs demands: some clients omit it by default, such as @parse/node-apn "
          + "without expiry")
    }
    if hasOtherAlgorithm {
      add(
        .jwtAlgorithm,
        "the provider token has alg ES512 over a P-256 key, as pushok signs: Apple documents ES256 only, and whether APNs "
          + "accepts this is inferred")
    }
    if hasIgnoredToken {
      add(
        .ignoredToken,
        "the connection has a client certificate, so that APNs ignores authorization: topics and environment are those of the "
          + "certificate")
    }
    let mistakes = mistakes(known)
    if !mistakes.isEmpty { add(.probableMistake, mistakes.joined(separator: "; ")) }
    if isOverHTTP1 {
      add(.notHTTP2, "the push arrived over HTTP/1.1 on a cleartext listener: APNs accepts HTTP/2 over TLS only")
    }
    return findings
  }

  /// Whether APNs' rules accepted the push. The response to a rejected push already names its error; a push that a
  /// fault kept from being accepted still counts.
  private var passesRules: Bool { hasVerdict && head { $0.verdict.isAccepted } }

  private var isNearLimit: Bool {
    let limit = head { $0.verdict.facts.payloadLimit }
    return passesRules && bodySize * 100 >= limit * FindingThreshold.nearLimitPercent
  }

  /// Whether its provider token was accepted with ES512 over a P-256 key (Protocol.md, section 3.1, inferred).
  private var hasOtherAlgorithm: Bool {
    passesRules && head { $0.verdict.token?.algorithm == SigningAlgorithm.es512.rawValue }
  }

  /// Whether it has a provider token and its connection a client certificate (Protocol.md, section 4.2, documented).
  var hasIgnoredToken: Bool {
    hasVerdict && head { $0.verdict.credential == .certificate && $0.verdict.facts.authorization != nil }
  }

  /// Returns descriptions of what was probably meant as something else: names in the request, and a device token or topic that
  /// resembles a known one.
  ///
  /// - Parameter known: The devices and topics that the server knows; nil for none.
  private borrowing func mistakes(_ known: KnownTargets?) -> [String] {
    guard hasVerdict else { return [] }
    let passesRules = passesRules
    var mistakes =
      passesRules
      ? withHeaders { headers in withBody { Rulebook.nameMistakes(facts, headers: headers, body: $0) } } : []
    guard let known else { return mistakes }
    if passesRules, head({ $0.verdict.credential == .token }),
      let topic = withTopic({ $0.flatMap { known.topicProblem($0) } })
    {
      mistakes.append(topic)
    }
    // The other checks of a rejected push say nothing about its device token.
    let failed = passesRules ? nil : verdict?.failed
    if let range = facts.deviceToken, passesRules || failed == .deviceToken || failed == .deviceEnvironment,
      let token = withHeaders({ known.deviceTokenProblem($0[range]) })
    {
      mistakes.append(token)
    }
    return mistakes
  }

  /// Whether a nonzero expiration was over when the push arrived, by the server's clock. A relative time such as 300
  /// means 1970.
  private var hasPastExpiration: Bool {
    guard passesRules, let expiration = facts.expiration, expiration > 0 else { return false }
    return isOver(expiration)
  }

  /// The unit in which the expiration is a time within ten years of the arrival of the push, if it is smaller than a second.
  private var expirationUnit: (name: String, perMillisecond: Int64)? {
    guard passesRules, let expiration = facts.expiration, expiration > 0 else { return nil }
    let units: [(name: String, perMillisecond: Int64)] = [
      ("milliseconds", 1), ("microseconds", 1000), ("nanoseconds", 1_000_000),
    ]
    return units.first { abs(expiration / $0.perMillisecond - receivedAt) < 10 * 365 * 86_400_000 }
  }

  /// Whether the expiration did not allow to store the push for a device that was offline (Protocol.md, section 11).
  private var isNotStored: Bool {
    guard delivery == .discardedExpired, let expiration = facts.expiration else { return false }
    return isOver(expiration)
  }

  /// Returns whether a time in seconds since 1970 is not after the arrival of the push.
  private func isOver(_ seconds: Int64) -> Bool { seconds <= receivedAt / 1000 }

  private static func pastExpirationText(_ seconds: Int64) -> String {
    let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    let time = overflow ? nil : TimestampFormat.text(milliseconds)
    // Ten years: no provider means a time before 1980.
    let hint = seconds < 315_360_000 ? ": it is a UNIX time, not a duration in seconds" : ""
    return "apns-expiration \(seconds) is \(time ?? "in the past")\(hint)"
  }

  /// Whether it creates a channel or sends a broadcast in a form that only the rules `apple` and `lenient` accept
  /// (Protocol.md, section 10).
  private var hasUndocumentedForm: Bool {
    passesRules && withContents { facts.hasUndocumentedForm(headers: $0, body: $1) }
  }

  private var isBroadcastWithoutExpiration: Bool {
    guard !passesRules, facts.expirationText == nil, kind == .broadcast else { return false }
    return verdict?.reason == .badExpirationDate
  }

  private var isOverHTTP1: Bool { connection.http == .http1 }

  private borrowing func lacksPushType(by rulebook: Rulebook) -> Bool {
    passesRules && facts.pushTypeText == nil && withTopic { rulebook.lacksPushType(facts, topic: $0) }
  }

  private borrowing func displayProblem(by rulebook: Rulebook) -> DisplayProblem? {
    guard passesRules else { return nil }
    return withHeaders { headers in
      withTopic { topic in
        withBody { rulebook.displayProblem(facts, headers: headers, topic: topic, body: $0, at: receivedAt) }
      }
    }
  }

  private var missingTypeText: String {
    let topic = withTopic { $0.flatMap { PushType(suffixOf: $0) } }
    let guess = topic.map { "; by its topic it is \($0.text)" } ?? ""
    return "the push has no apns-push-type\(guess): APNs accepts it, but watchOS and silent pushes require the type"
  }
}

extension Inbox {
  /// Returns all findings on a record.
  package func findings(on record: Record, by rulebook: Rulebook) -> [Finding] {
    if let imported = record.importedFindings { return record.findings(imported: imported, by: rulebook) }
    return evidence(by: record, rulebook).map { $0.finding(on: record) }
      + record.ownFindings(by: rulebook, knownTargets)
  }

  /// Analyzes all new records, so that later queries for findings reflect everything known now. Takes about a second
  /// for a million new records and delays no push.
  ///
  /// - Throws: `StoreUnavailable` if the store could not be read, so that some records are analyzed later.
  package func updateFindings(by rulebook: Rulebook) throws(StoreUnavailable) {
    try analyzer.catchUp(with: self, by: rulebook)
  }

  /// Returns the evidence for findings on a record that depends on other records, after `updateFindings`.
  func evidence(by record: borrowing Record, _ rulebook: Rulebook) -> [FindingEvidence] {
    // For a record that arrived since. What cannot be read is analyzed later.
    try? analyzer.catchUp(to: record, with: self, by: rulebook)
    let abandonedAfter = rulebook.settings.abandonedAfter.milliseconds
    return analyzer.evidence(by: record, abandonedAfter: abandonedAfter, now: now?()).sorted { $0.kind < $1.kind }
  }
}

extension Record {
  /// The `user-agent` of pushes sent by `apns-mock send`, `doctor` and the web UI. Each uses a connection of its
  /// own, which is not a fault of the provider.
  package static let ownUserAgent = "apns-mock"

  /// Whether one of these clients sent the push.
  var isByOwnClient: Bool {
    withHeaders { packed in
      var isOwn = false
      HeaderList.forEachField(in: packed) { name, value in
        guard packed[name.indices].elementsEqual("user-agent".utf8) else { return }
        isOwn = packed[value.indices].elementsEqual(Self.ownUserAgent.utf8)
      }
      return isOwn
    }
  }
}

/// The findings of an imported record. They are not computed again, because they depend on data that the export
/// lacks: machine times, and the identity of provider tokens.
extension Record {
  /// Returns the names of the findings as in the record's JSON.
  func findingNames(by rulebook: Rulebook, in inbox: Inbox?) -> [String] {
    importedFindingNames ?? findingKinds(by: rulebook, in: inbox).map(\.rawValue)
  }

  /// Whether the record was imported from an export.
  package var isImported: Bool { head { $0.marks }.contains(.hasImportedFindings) }

  /// The exported findings that this version knows; nil for a record that was not imported.
  var importedFindings: [Finding.Kind]? { importedFindingNames?.compactMap(Finding.Kind.init) }

  var importedFindingNames: [String]? {
    guard isImported else { return nil }
    return withBytes(head { $0.importedFindingsRange }) { packed in
      var names: [String] = []
      HeaderList.forEachField(in: packed) { name, _ in
        names.append(String(decoding: packed[name.indices], as: UTF8.self))
      }
      return names
    }
  }

  /// Returns the exported findings with explanations: specific ones if the finding follows from the record alone,
  /// else the meaning of the kind.
  borrowing func findings(imported kinds: [Finding.Kind], by rulebook: Rulebook) -> [Finding] {
    let own = ownFindings(by: rulebook, nil)
    var findings: [Finding] = []
    for kind in kinds {
      let known = own.first { $0.kind == kind }
      findings.append(
        known
          ?? Finding(
            kind, on: self,
            explanation: "\(kind.summary) The export does not contain the evidence."))
    }
    return findings
  }
}
