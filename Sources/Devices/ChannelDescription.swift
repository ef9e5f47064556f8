package import APNSRules

/// A broadcast channel, as in a fixture file.
package struct ChannelDescription: Sendable, Equatable {
  /// The app that the channel belongs to.
  package var bundleID: String
  package var environment: PushEnvironment
  /// The id in base64.
  package var id: String
  /// 0 if nothing is stored for devices that are offline, 1 if the newest message is (Protocol.md, section 10).
  package var messageStoragePolicy: Int

  /// Creates a description of a channel.
  package init(bundleID: String, environment: PushEnvironment, id: String, messageStoragePolicy: Int) {
    self.bundleID = bundleID
    self.environment = environment
    self.id = id
    self.messageStoragePolicy = messageStoragePolicy
  }

  /// The maximum number of channels of an app in an environment (Protocol.md, section 10).
  package static let limit = 10_000

  /// Returns whether `text` can be a channel's id: standard base64 with padding, of 1 to 256 characters.
  package static func isID(_ text: String) -> Bool { ChannelID.isWellFormed(text) }
}
