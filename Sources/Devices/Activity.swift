package import APNSMockRules
package import APNSMockNotation

/// The state of a Live Activity, apart from its token.
struct Activity: Sendable {
  /// `attributes-type` of the push that started it; nil if the app did.
  var attributesType: String?
  /// The `seq` of the push that started it; nil if the app did.
  var startedBy: Int?
  /// When it started; nil if that is when its token was registered.
  var startedAt: ServerTime?
  /// The largest `timestamp` of its pushes, in seconds since 1970, and the `seq` of the last of them.
  var newest: (timestamp: Double, seq: Int)?
  /// When it disappears from the screen; nil as long as it has not ended.
  var dismissedAt: ServerTime?
}

/// A Live Activity push on its way to a device.
struct ActivityPush: Sendable {
  let content: ActivityContent
  /// The token that it was sent to, or that has replaced it since; `none` if it was removed.
  var token: DeviceTables.Index
}

/// Something that happened on a device that is watched.
package struct DeviceEvent: Sendable, Equatable {
  /// The kinds of events; the raw values are their names in streams.
  package enum Kind: String, CaseIterable, Sendable {
    /// The device has received a push, whether it shows it or not.
    case notification
    /// A Live Activity was started, by a push or by the app.
    case activityStarted = "activity.started"
    /// A Live Activity has a new token.
    case activityRotated = "activity.rotated"
    /// A Live Activity has ended.
    case activityEnded = "activity.ended"
  }

  package let kind: Kind
  package let deviceID: String
  package let bundleID: String
  package let environment: PushEnvironment
  /// When it happened, in milliseconds since 1970 by the server's clock.
  package let time: ServerTime
  /// The `seq` of the record of the push that caused it; nil if none did.
  package var seq: Int?
  /// The state of the push's delivery, of a notification.
  package var state: DeliveryState?
  /// The token of the Live Activity.
  package var token: String?
  /// The token that was replaced.
  package var formerToken: String?
  /// `attributes-type` of the push that started the Live Activity.
  package var attributesType: String?
  /// When the ended Live Activity disappears and its token expires, in milliseconds since 1970.
  package var dismissedAt: ServerTime?
}

/// A Live Activity that has not disappeared.
package struct ActivityDescription: Sendable, Equatable {
  package let token: String
  package let bundleID: String
  package let environment: PushEnvironment
  /// `attributes-type` of the push that started it; nil if the app did.
  package let attributesType: String?
  /// The `seq` of the push that started it; nil if the app did.
  package let startedBy: Int?
  /// Milliseconds since 1970.
  package let startedAt: ServerTime
  /// When it disappears, in milliseconds since 1970; nil as long as it has not ended.
  package let dismissedAt: ServerTime?
}
