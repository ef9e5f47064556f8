/// Why a device would not show a push that APNs accepts (Protocol.md, sections 5 and 6).
public enum UnshownPush: Sendable, Equatable {
  /// `background` with priority 10: devices drop it.
  case backgroundPriority
  /// The body is not JSON; with the error and its position.
  case notJSON(String)
  /// The body is JSON but not an object.
  case notObject
  /// There is no `aps`.
  case noDictionary
  /// `aps` is not an object.
  case dictionaryIsNone
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
  /// A Live Activity push without a member, or with an invalid one.
  case activityLacks(member: String)
  /// A widget or control push without `content-changed: true`.
  case contentNotChanged
  /// An `mdm` push without the member `mdm`.
  case noPushMagic

  /// An explanation: what is wrong and how to fix it.
  public var text: String {
    switch self {
    case .backgroundPriority: "a background push has priority 10: devices drop it, send it with apns-priority 5"
    case .notJSON(let problem): "the body is not JSON (\(problem)): APNs accepts it, but the device cannot parse it"
    case .notObject: "the body is JSON but not an object, so it has no aps"
    case .noDictionary: "the payload has no aps: put alert, badge and sound in an object with this name"
    case .dictionaryIsNone: "aps is not an object: the device shows nothing"
    case .nothingToShow: "aps has neither alert, badge nor sound: there is nothing to show"
    case .unusable(let member, let problem): "aps.\(member) \(problem): the device shows nothing"
    case .silentWithoutType(true):
      "aps has content-available and nothing to show: without apns-push-type background it does not arrive"
    case .silentWithoutType(false):
      "a silent push without apns-push-type does not arrive since iOS 13: set background and apns-priority 5"
    case .backgroundNotSilent: "a background push needs content-available 1 in aps"
    case .backgroundShows(let member):
      "a background push must not have \(member) in aps: send visible content with apns-push-type alert"
    case .activityLacks(let member):
      "aps lacks a usable \(member), without which a device ignores what a Live Activity is sent"
    case .contentNotChanged: "aps lacks content-changed true, which is the only content of this push type"
    case .noPushMagic: "the payload has no mdm: the device would not know what it is for"
    }
  }
}
