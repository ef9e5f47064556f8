/// A state of a push in the delivery log of Apple's push notifications console, with Apple's texts (Protocol.md,
/// section 11).
package enum DeliveryState: UInt8, CaseIterable, Sendable {
  case received = 1
  case delivered
  case deliveredFromStorage
  case storedOffline
  case storedForPower
  case discardedUnregistered
  case discardedUnregisteredFromStorage
  case discardedExpired
  case discardedDisabled
  case discardedDisabledFromStorage

  /// Apple's text.
  package var text: String {
    switch self {
    case .received: "Received by APNs"
    case .delivered: "Delivered to Device"
    case .deliveredFromStorage: "Delivered to Device (From Storage)"
    case .storedOffline: "Stored - Device Offline"
    case .storedForPower: "Stored - Power Considerations"
    case .discardedUnregistered: "Discarded - Token Unregistered"
    case .discardedUnregisteredFromStorage: "Discarded - Token Unregistered (From Storage)"
    case .discardedExpired: "Discarded - Expired"
    case .discardedDisabled: "Discarded - Disabled"
    case .discardedDisabledFromStorage: "Discarded - Disabled (From Storage)"
    }
  }

  /// Creates the state with this text, compared without case; nil if there is none.
  package init?(text: String) {
    let text = text.lowercased()
    guard let state = Self.allCases.first(where: { $0.text.lowercased() == text }) else { return nil }
    self = state
  }

  /// Whether no other state follows.
  package var isFinal: Bool { self != .received && !isStored }

  /// Whether the push is stored until the device can receive it.
  package var isStored: Bool { self == .storedOffline || self == .storedForPower }
}
