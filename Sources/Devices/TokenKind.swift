package import APNSMockRules

/// What a device token was registered for: the pushes of a type. Live Activities have tokens of two kinds.
package enum TokenKind: UInt8, CaseIterable, Sendable {
  // In the order of `PushType`, with the same raw values.
  case alert, background, complication, controls, fileprovider
  /// The token of one Live Activity, for its events `update` and `end`.
  case liveactivity
  case location, mdm, pushtotalk, voip, widgets
  /// The push-to-start token of an app, for the event `start` of Live Activities.
  case liveactivityStart

  /// Creates the kind with this name; nil if there is none.
  package init?(text: String) {
    guard let kind = Self.allCases.first(where: { $0.text == text }) else { return nil }
    self = kind
  }

  /// The name in fixtures and in the API.
  package var text: String { self == .liveactivityStart ? "liveactivity_start" : pushType.text }

  /// The type of the pushes.
  package var pushType: PushType { PushType(rawValue: rawValue) ?? .liveactivity }
}
