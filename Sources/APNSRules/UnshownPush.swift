/// Why a device would show nothing of a push that APNs accepts (APNS.md sections 5 and 6).
public enum UnshownPush: Sendable, Equatable {
  /// `background` with priority 10: devices drop it.
  case backgroundPriority
  /// Not JSON; with what is wrong and where.
  case notJSON(String)
  /// JSON, but no object.
  case notObject
  /// No `aps` dictionary.
  case noDictionary
  /// `aps` is not an object.
  case dictionaryIsNone
  /// `aps` has nothing to show, and nothing to be woken by.
  case nothingToShow
  /// What `aps` has to show cannot be shown: the member, and what is wrong with it.
  case unusable(member: String, problem: String)
  /// `content-available` alone, by a push that is not of type `background`.
  case silentWithoutType(hasType: Bool)
  /// `background` without `content-available: 1`.
  case backgroundNotSilent
  /// `background` with something to show.
  case backgroundShows(member: String)
  /// A Live Activity lacks a member, or it is something else than it has to be.
  case activityLacks(member: String)
  /// A widget or control without `content-changed: true`.
  case contentNotChanged
  /// `mdm` without a push magic.
  case noPushMagic

  /// Why, in words: what is wrong and what to do.
  public var text: String {
    switch self {
    case .backgroundPriority: "a background push has priority 10: devices drop it, send it with apns-priority 5"
    case .notJSON(let problem): "the body is not JSON (\(problem)): APNs takes it, the device cannot read it"
    case .notObject: "the body is JSON but no object: there is no aps in it"
    case .noDictionary: "the payload has no aps: put alert, badge and sound into an object of that name"
    case .dictionaryIsNone: "aps is not an object: nothing of it can be shown"
    case .nothingToShow: "aps has neither alert, badge nor sound: there is nothing to show"
    case .unusable(let member, let problem): "aps.\(member) \(problem): the device shows nothing"
    case .silentWithoutType(true):
      "aps has content-available and nothing to show: without apns-push-type background it does not arrive"
    case .silentWithoutType(false):
      "a silent push without apns-push-type does not arrive since iOS 13: say background, with apns-priority 5"
    case .backgroundNotSilent: "a background push needs content-available 1 in aps"
    case .backgroundShows(let member):
      "a background push must not have \(member) in aps: send what is to be seen as apns-push-type alert"
    case .activityLacks(let member):
      "aps lacks a usable \(member), without which a device ignores what a Live Activity is sent"
    case .contentNotChanged: "aps lacks content-changed true, which is all that this push type says"
    case .noPushMagic: "the payload has no mdm: the device would not know what it is for"
    }
  }
}
