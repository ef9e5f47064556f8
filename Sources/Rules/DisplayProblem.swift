/// Why a device would not show a push that APNs accepts (Protocol.md, sections 5 and 6).
package enum DisplayProblem: Error, Equatable {
  /// `background` with priority 10: devices drop it.
  case backgroundPriority
  /// The body is not JSON; with the error and its position.
  case notJSON(String)
  /// The body is JSON but not an object.
  case notObject
  /// There is no `aps`.
  case missingAPS
  /// `aps` is not an object.
  case apsIsNotObject
  /// `aps` has neither alert, badge, sound nor `content-available`.
  case nothingToShow
  /// A member of `aps` cannot be shown; with its name and the problem.
  case unusable(member: String, problem: String)
  /// Only `content-available`, in a push that is not of type `background`.
  case silentWithoutType(hasType: Bool)
  /// `background` without `content-available: 1`.
  case backgroundNotSilent
  /// `background` with a member that shows something.
  case backgroundShows(member: String)
  /// A member of `aps` without which a device ignores a Live Activity push is missing or unusable; with its name and the
  /// problem.
  case activity(member: String, problem: String)
  /// The event `start` to the token of an activity.
  case startToActivityToken
  /// Another event to a push-to-start token.
  case updateToStartToken(event: String)
  /// An event to the token of an activity that has ended.
  case activityEnded(event: String)
  /// An update that is older than the one that the activity shows; with both values of `timestamp` in seconds.
  case olderThanShown(timestamp: Double, shown: Double)
  /// The event `start` to an app that has the maximum number of valid tokens on its device.
  case tooManyActivities
  /// A broadcast with the event `start`.
  case activityStartedByBroadcast
  /// A widget or control push without `content-changed: true`.
  case contentNotChanged
  /// An `mdm` push without the member `mdm`.
  case noPushMagic

  /// An explanation: what is wrong and how to fix it.
  package var text: String {
    switch self {
    case .backgroundPriority: "a background push has priority 10: devices drop it, send it with apns-priority 5"
    case .notJSON(let problem): "the body is not JSON (\(problem)): APNs accepts it, but the device cannot parse it"
    case .notObject: "the body is JSON but not an object, so it has no aps"
    case .missingAPS: "the payload has no aps: put alert, badge and sound in an object with this name"
    case .apsIsNotObject: "aps is not an object: the device shows nothing"
    case .nothingToShow: "aps has neither alert, badge nor sound: there is nothing to show"
    case .unusable(let member, let problem): "aps.\(member) \(problem): the device shows nothing"
    case .silentWithoutType(true):
      "aps has content-available and nothing to show: without apns-push-type background it does not arrive"
    case .silentWithoutType(false):
      "a silent push without apns-push-type does not arrive since iOS 13: set background and apns-priority 5"
    case .backgroundNotSilent: "a background push needs content-available 1 in aps"
    case .backgroundShows(let member):
      "a background push must not have \(member) in aps: send visible content with apns-push-type alert"
    case .activity(let member, let problem): "aps.\(member) \(problem): the device ignores the Live Activity push"
    case .startToActivityToken:
      "the event start was sent to the token of an activity: send it to the app's push-to-start token"
    case .updateToStartToken(let event):
      "the event \(event) was sent to a push-to-start token: send it to the token that the app got for the activity"
    case .activityEnded(let event):
      "the Live Activity has ended, so that the device ignores the event \(event)"
    case .olderThanShown(let timestamp, let shown):
      "aps.timestamp \(Self.seconds(timestamp)) is older than the \(Self.seconds(shown)) of the activity"
    case .tooManyActivities: "the app has the maximum number of valid tokens on the device: nothing starts"
    case .activityStartedByBroadcast:
      "a broadcast cannot start a Live Activity: send the event start to a push-to-start token, update and end by broadcast"
    case .contentNotChanged: "aps lacks content-changed true, which is the only content of this push type"
    case .noPushMagic: "the payload has no mdm: the device would not know what it is for"
    }
  }
  private static func seconds(_ value: Double) -> String {
    Int64(exactly: value).map(String.init) ?? "\(value)"
  }
}
