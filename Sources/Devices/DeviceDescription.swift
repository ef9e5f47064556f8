package import APNSMockNotation
package import APNSMockRules

/// The connection of a device to APNs.
package enum DeviceState: String, CaseIterable, Sendable, Codable {
  /// Pushes are delivered at once.
  case online
  /// Pushes are stored until the device is online.
  case offline
  /// Pushes with priority 5 or 1 are stored until the device is online without restriction.
  case powerRestricted = "power_restricted"
}

/// The state of an app on a device.
package enum InstallationState: String, CaseIterable, Sendable, Codable {
  /// Notifications are delivered.
  case enabled
  /// The user has disabled notifications: pushes that are shown are accepted and discarded; others, such as background
  /// pushes, are delivered to the app.
  case disabled
  /// The user has force-quit the app: the newest background push is held until the app is launched (Protocol.md, section
  /// 6.4).
  case forceQuit = "force_quit"
  /// The app was removed: APNs learns it from the first accepted push after that.
  case removed
}

/// A device token and what it was registered for.
package struct TokenDescription: Sendable, Equatable {
  /// `alert` for an app's ordinary token.
  package var kind: TokenKind
  /// The token in lower-case hexadecimal.
  package var token: String
  /// When the token expired, in milliseconds since 1970, such as that of an ended Live Activity; nil for a token that
  /// is valid.
  package var expiredAt: ServerTime?
  /// When the token was unregistered on its own, in milliseconds since 1970: pushes to it are rejected with 410
  /// `Unregistered`. Nil for a token that is valid.
  package var unregisteredAt: ServerTime?

  /// Whether pushes to the token are accepted.
  var isValid: Bool { expiredAt == nil && unregisteredAt == nil }

  /// Creates a description of a token.
  package init(
    kind: TokenKind, token: String, expiredAt: ServerTime? = nil, unregisteredAt: ServerTime? = nil
  ) {
    self.kind = kind
    self.token = token
    self.expiredAt = expiredAt
    self.unregisteredAt = unregisteredAt
  }
}

/// An app on a device, with its tokens.
package struct InstallationDescription: Sendable, Equatable {
  package var bundleID: String
  package var environment: PushEnvironment
  package var state: InstallationState
  /// The tokens; those that died with an earlier installation are not included.
  package var tokens: [TokenDescription]

  /// Creates a description of an app on a device.
  package init(
    bundleID: String, environment: PushEnvironment, state: InstallationState = .enabled, tokens: [TokenDescription] = []
  ) {
    self.bundleID = bundleID
    self.environment = environment
    self.state = state
    self.tokens = tokens
  }
}

/// A device with its apps, as in a fixture file.
package struct DeviceDescription: Sendable, Equatable {
  /// The name of the device in tests; see `isID`.
  package var id: String
  package var state: DeviceState
  package var apps: [InstallationDescription]

  /// Creates a description of a device.
  package init(id: String, state: DeviceState = .online, apps: [InstallationDescription] = []) {
    self.id = id
    self.state = state
    self.apps = apps
  }

  /// Returns whether `text` can be the name of a device: a letter, then up to 63 letters, digits, `_` and `-`, and neither
  /// a hexadecimal number, which would be a device token, nor `notifications`, a path of the admin API.
  package static func isID(_ text: String) -> Bool {
    let bytes = text.utf8
    guard let first = bytes.first, bytes.count <= 64, isLetter(first), text != "notifications" else { return false }
    return bytes.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) || $0 == 0x5F || $0 == 0x2D }
      && !bytes.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0 | 0x20) }
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }
}
