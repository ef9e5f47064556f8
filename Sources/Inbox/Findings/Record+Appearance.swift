internal import APNSMockRules

extension Record {
  /// Whether the device shows a push, and why not.
  package enum Appearance: Sendable, Equatable {
    case shown
    /// The device has received the push and ignores it; with the reason.
    case notShown(String)
    /// The push has not reached a device, nothing is known about its device, or the push is for the app or the system and
    /// shows nothing by itself.
    case none
  }

  /// Returns whether the device shows the push.
  ///
  /// - Parameter findings: The findings on the record.
  package func appearance(_ findings: [Finding]) -> Appearance {
    guard delivery == .delivered || delivery == .deliveredFromStorage else { return .none }
    let owner = withTopic { TopicOwner($0) }
    if owner == .pass {
      return .notShown("Wallet shows no notification for a push to a pass: it ignores an alert and fetches the pass")
    }
    if let finding = findings.first(where: { $0.kind == .wouldNotShow || $0.kind == .backgroundBudget }) {
      return .notShown(finding.explanation)
    }
    guard owner != .managedDevice else { return .none }
    switch facts.pushType {
    case nil, .alert, .liveactivity: return .shown
    default: return .none
    }
  }
}
