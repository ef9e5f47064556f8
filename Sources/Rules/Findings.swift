internal import APNSMockHTTPMessage
package import APNSMockNotation

/// Findings about single pushes, that is, mistakes that APNs does not report (Findings.md). They are evaluated when
/// a record is read, not when the push arrives, and only apply to accepted pushes. Cases that the three modes treat
/// differently are findings in `apple` only.
extension Rulebook {
  /// Whether the push lacks a push type: watchOS requires it, silent pushes need it (Protocol.md, section 5). Pushes to
  /// passes, managed devices and websites reach no app, so they need none.
  ///
  /// - Parameter topic: The topic of the push, also that of the certificate; nil without one.
  package func lacksPushType(_ facts: PushFacts, topic: UnsafeRawBufferPointer?) -> Bool {
    mode == .apple && facts.pushTypeText == nil && facts.deviceToken != nil && TopicOwner(topic) == .app
  }

  /// Returns why a device would not show the push (Protocol.md, sections 5 and 6); nil if no reason is known.
  ///
  /// - Parameters:
  ///   - facts: The push's facts.
  ///   - headers: The packed header fields the facts were read from.
  ///   - topic: The topic of the push, also that of the certificate; nil without one.
  ///   - body: The push's payload.
  ///   - now: When the push was received, in milliseconds since 1970 by the server's clock.
  package func displayProblem(
    _ facts: PushFacts, headers: UnsafeRawBufferPointer, topic: UnsafeRawBufferPointer?, body: UnsafeRawBufferPointer,
    at now: ServerTime
  ) -> DisplayProblem? {
    let kind = facts.kind(in: headers)
    let owner = TopicOwner(topic)
    // Wallet fetches the pass whatever the payload is (Protocol.md, section 6.5).
    if kind == .channel || owner == .pass { return nil }
    if mode == .apple, facts.pushType == .background, facts.priority == 10 { return .backgroundPriority }
    let payload: PayloadSummary
    do throws(JSONText.Problem) {
      guard let summary = try PayloadSummary(body) else { return .notObject }
      payload = summary
    } catch {
      return mode == .apple ? .notJSON("\(error)") : nil
    }
    if owner == .managedDevice { return payload.problemOfManagement }
    switch facts.pushType {
    case .voip, .complication, .fileprovider, .pushtotalk, .location: return nil
    case .mdm: return payload.problemOfManagement
    case .alert, nil:
      // The topic of a device management certificate may be one of an own name.
      if payload.member(.mdm) != nil { return nil }
      return payload.problemOfDictionary ?? payload.problemOfAlert(hasType: facts.pushType != nil)
    case .background: return payload.problemOfDictionary ?? payload.problemOfBackground
    case .liveactivity:
      if kind == .broadcast, payload.event == "start" { return .activityStartedByBroadcast }
      return payload.problemOfDictionary ?? payload.problemOfActivity(in: body, at: now)
    case .widgets, .controls:
      return payload.problemOfDictionary ?? (payload.isTrue(.contentChanged) ? nil : .contentNotChanged)
    }
  }
}

/// What a topic belongs to, by its beginning (Protocol.md, section 4.1).
package enum TopicOwner: Sendable {
  case app
  /// A pass in Wallet: `pass.`
  case pass
  /// A device that is managed with MDM: `com.apple.mgmt.`
  case managedDevice
  /// A website in Safari: `web.`
  case website

  /// Determines the owner of a topic.
  package init(_ topic: UnsafeRawBufferPointer?) {
    self =
      switch topic {
      case let topic? where topic.hasPrefix("pass."): .pass
      case let topic? where topic.hasPrefix("com.apple.mgmt."): .managedDevice
      case let topic? where topic.hasPrefix("web."): .website
      default: .app
      }
  }
}

/// Names in an accepted push that were probably meant as others.
extension Rulebook {
  /// Returns descriptions of the header fields and of the members of the payload that APNs and devices ignore because of
  /// their names or places, with what was probably meant.
  ///
  /// - Parameters:
  ///   - facts: The push's facts.
  ///   - headers: The packed header fields the facts were read from.
  ///   - body: The push's payload.
  package static func nameMistakes(
    _ facts: PushFacts, headers: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer
  ) -> [String] {
    let kind = facts.kind(in: headers)
    if kind == .channel { return [] }
    let fields = NearHeaderField.all(in: headers).map { field in
      "the header field \(Explanation.quoted(field.name)) is not one of APNs, which ignores it: write \(field.meant.rawValue)"
    }
    switch facts.pushType {
    case .alert, .background, .liveactivity, nil: return fields + PayloadMistakes(body, type: facts.pushType).texts
    default: return fields
    }
  }
}

/// Findings about broadcasts and channel management (Protocol.md, section 10).
extension PushFacts {
  /// Returns whether a broadcast or a new channel deviates from Apple's samples, so that APNs may reject it.
  ///
  /// - Parameters:
  ///   - headers: The packed header fields the facts were read from.
  ///   - body: The request's body.
  package func hasUndocumentedForm(headers: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer) -> Bool {
    switch kind(in: headers) {
    case .push: return false
    case .broadcast: return pushTypeText.map { !headers[$0].equals("liveactivity") } ?? false
    case .channel:
      guard let method, headers[method].equals("POST"), let channel = try? NewChannel(body) else { return false }
      return channel.storagePolicy.map(NewChannel.isString) ?? false
        || channel.pushType.map { $0 != "\"LiveActivity\"" } ?? false
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

  /// A push to a managed device has `mdm`, the device's PushMagic, and needs no `aps`.
  fileprivate var problemOfManagement: DisplayProblem? { member(.mdm) == nil ? .noPushMagic : nil }

  /// - Parameter body: The payload that was scanned.
  fileprivate func problemOfActivity(in body: UnsafeRawBufferPointer, at now: ServerTime) -> DisplayProblem? {
    guard let dictionaryRange else { return .apsIsNotObject }
    do throws(DisplayProblem) {
      _ = try ActivityContent(aps: body.part(dictionaryRange), at: now)
      return nil
    } catch {
      return error
    }
  }
}
