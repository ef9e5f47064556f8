package import APNSMockNotation

/// The registration of a device token.
package struct RegisteredToken: Sendable, Equatable {
  /// The topics that the token belongs to.
  package enum Topics: Sendable, Equatable {
    case any
    /// Exactly this `apns-topic`.
    case exactly(String)
    /// The topic of an app for a push type: the bundle id and the type's suffix.
    case app(bundleID: String, kind: PushType)
  }

  /// Whether pushes to the token are accepted.
  package enum Status: Sendable, Equatable {
    case active
    /// 410 `ExpiredToken`, with the time in milliseconds since 1970.
    case expired(since: ServerTime)
    /// 410 `Unregistered`, with the time in milliseconds since 1970.
    case unregistered(since: ServerTime)
  }

  /// The environment the token belongs to; nil for both.
  package var environment: PushEnvironment?
  /// The topics the token belongs to.
  package var topics: Topics
  /// Whether pushes to the token are accepted.
  package var status: Status
  /// Whether this is what an answer of upstream said about the token.
  package var isFromUpstream: Bool
  /// Whether an answer of upstream said to which topic and environment the token belongs, rather than an app on a device.
  package var isRegisteredByUpstream: Bool { if case .app = topics { false } else { isFromUpstream } }

  /// Creates a description of a token.
  package init(environment: PushEnvironment?, topics: Topics, status: Status = .active, isFromUpstream: Bool = false) {
    self.environment = environment
    self.topics = topics
    self.status = status
    self.isFromUpstream = isFromUpstream
  }
}
