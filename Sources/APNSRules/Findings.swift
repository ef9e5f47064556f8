internal import HTTPMessage
internal import Notation

/// Findings about single pushes, that is, mistakes that APNs does not report (Findings.md). They are evaluated when
/// a record is read, not when the push arrives, and only apply to accepted pushes. Cases that the three modes treat
/// differently are findings in `apple` only.
extension Rulebook {
  /// Whether the push lacks a push type: watchOS requires it, silent pushes need it (Protocol.md, section 5).
  package func lacksPushType(_ facts: PushFacts) -> Bool {
    mode == .apple && facts.pushTypeText == nil && facts.deviceToken != nil
  }

  /// Returns why a device would not show the push (Protocol.md, sections 5 and 6); nil if no reason is known.
  ///
  /// - Parameters:
  ///   - facts: The push's facts.
  ///   - headers: The packed header fields the facts were read from.
  ///   - body: The push's payload.
  package func displayProblem(
    _ facts: PushFacts, headers: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer
  ) -> DisplayProblem? {
    let kind = facts.kind(in: headers)
    if kind == .channel { return nil }
    if mode == .apple, facts.pushType == .background, facts.priority == 10 { return .backgroundPriority }
    let payload: PayloadSummary
    do throws(JSONText.Problem) {
      guard let summary = try PayloadSummary(body) else { return .notObject }
      payload = summary
    } catch {
      return mode == .apple ? .notJSON("\(error)") : nil
    }
    switch facts.pushType {
    case .voip, .complication, .fileprovider, .pushtotalk, .location: return nil
    case .mdm: return payload.member(.mdm) == nil ? .noPushMagic : nil
    case .alert, nil:
      // Wallet fetches the pass whatever the payload is, which is mostly {} or {"aps":{}}; MDM commands have no aps
      // (Protocol.md, section 6.2).
      if let topic = facts.topic, headers.part(topic.indices).hasPrefix("pass.") { return nil }
      if payload.member(.mdm) != nil || payload.isEmpty && facts.topicIsFromCertificate { return nil }
      return payload.problemOfDictionary ?? payload.problemOfAlert(hasType: facts.pushType != nil)
    case .background: return payload.problemOfDictionary ?? payload.problemOfBackground
    case .liveactivity:
      if kind == .broadcast, payload.event == "start" { return .activityStartedByBroadcast }
      return payload.problemOfDictionary ?? payload.problemOfActivity
    case .widgets, .controls:
      return payload.problemOfDictionary ?? (payload.isTrue(.contentChanged) ? nil : .contentNotChanged)
    }
  }
}

/// Findings about broadcasts and channel management (Protocol.md, section 10).
extension Rulebook {
  /// Returns how an accepted request deviates from Apple's samples, which APNs may reject; nil if it does not.
  ///
  /// - Parameters:
  ///   - facts: The request's facts.
  ///   - headers: The packed header fields the facts were read from.
  ///   - body: The request's body.
  package func channelRequestForm(
    _ facts: PushFacts, headers: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer
  ) -> String? {
    guard mode != .strict else { return nil }  // Rejected.
    switch facts.kind(in: headers) {
    case .push: return nil
    case .broadcast:
      guard let text = facts.pushTypeText, !headers.part(text.indices).equals("liveactivity") else { return nil }
      return "apns-push-type is \(Explanation.quoted(text, headers)), Apple's samples have liveactivity"
    case .channel:
      guard let method = facts.method, headers.part(method.indices).equals("POST"), let channel = try? NewChannel(body)
      else { return nil }
      if let policy = channel.storagePolicy, NewChannel.isString(policy) {
        return "message-storage-policy is the string \(policy), Apple documents a number"
      }
      guard let type = channel.pushType, type != "\"LiveActivity\"" else { return nil }
      return "push-type is \(type), Apple documents \"LiveActivity\""
    }
  }
}

extension PayloadSummary {
  fileprivate func isTrue(_ name: Name) -> Bool { if case .yes = apple(name) { true } else { false } }

  fileprivate var problemOfDictionary: DisplayProblem? {
    switch member(.aps) {
    case nil: .missingAPS
    case .object: nil
    default: .apsIsNotObject
    }
  }

  /// One member that can be seen or heard is enough (Protocol.md, section 6.2).
  fileprivate func problemOfAlert(hasType: Bool) -> DisplayProblem? {
    var problem: DisplayProblem?
    for name in [Name.alert, .badge, .sound] {
      guard let content = apple(name) else { continue }
      guard let text = self.problem(of: content, as: name) else { return nil }
      problem = problem ?? .unusable(member: name.text.description, problem: text)
    }
    if let problem { return problem }
    return isTrue(.contentAvailable) ? .silentWithoutType(hasType: hasType) : .nothingToShow
  }

  /// Returns why a device cannot show a member; nil if it can.
  private func problem(of content: Content, as name: Name) -> String? {
    switch (name, content) {
    case (.alert, .emptyText), (.sound, .emptyText): "is an empty string"
    case (.alert, .text), (.sound, .text): nil
    case (.alert, .object): alertHasText ? nil : "is an object without title, subtitle and body"
    case (.sound, .object), (.badge, .number), (.badge, .yes): nil
    case (.badge, _): "is not a number"
    default: "is neither a string nor an object"
    }
  }

  /// A background push has `content-available: 1` and nothing to show (Protocol.md, section 5).
  fileprivate var problemOfBackground: DisplayProblem? {
    if let shown = [Name.alert, .badge, .sound].first(where: { apple($0) != nil }) {
      return .backgroundShows(member: shown.text.description)
    }
    return isTrue(.contentAvailable) ? nil : .backgroundNotSilent
  }

  /// Members that all Live Activity pushes need, and additional ones for the event `start` (Protocol.md, section
  /// 6.3).
  fileprivate var problemOfActivity: DisplayProblem? {
    switch apple(.timestamp) {
    case .number, .yes: break
    default: return .activityMissingMember(member: "timestamp (a number of seconds)")
    }
    guard let step = event, ["start", "update", "end"].contains(step) else {
      return .activityMissingMember(member: "event (start, update or end)")
    }
    let needed = [Name.contentState] + (step == "start" ? [.attributesType, .attributes, .alert] : [])
    return needed.first { apple($0) == nil }.map {
      .activityMissingMember(member: "\($0.text.description) (for event \(step))")
    }
  }
}
