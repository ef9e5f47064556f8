internal import APNSMockRules
internal import APNSMockDevices
internal import APNSMockNotation

/// A change to a device or to an app on it.
enum DeviceAction: String, CaseIterable {
  case online, offline
  case restrictPower = "restrict-power"
  case install, uninstall, reinstall, enable, disable, launch
  case forceQuit = "force-quit"
  case startActivity = "start-activity"
  case rotateActivityToken = "rotate-activity-token"
  case endActivity = "end-activity"

  /// The schema of the request's body.
  var schema: MapSchema<DeviceActionRequest> {
    switch self {
    case .online, .offline, .restrictPower: DeviceActionRequest.nothing
    case .install, .reinstall: DeviceActionRequest.installation
    case .uninstall, .enable, .disable, .launch, .forceQuit, .startActivity: DeviceActionRequest.app
    case .rotateActivityToken, .endActivity: DeviceActionRequest.activity
    }
  }
}

/// The body of a request for a `DeviceAction`, whose schema depends on the action.
struct DeviceActionRequest {
  var bundleID = ""
  var environment: PushEnvironment?
  var pushTypes: [String]?
  var token: String?

  private static let appFields: [Field<Self>] = [
    .required(
      "bundle_id", \.bundleID, .text, example: "com.example.app", "The app, without the suffix of a push type."),
    .optional(
      "environment", \.environment, .word, default: "that of the installed app, or else of the server",
      "The environment."),
  ]

  static let nothing = MapSchema("Nothing", Self())
  static let app = MapSchema("AppOnDevice", Self(), fields: appFields)
  static let installation = MapSchema(
    "InstallationOnDevice", Self(),
    fields: appFields + [
      .optional(
        "push_types", \.pushTypes, .textOrTexts, default: "`alert`",
        "The push types for which the app has device tokens.")
    ])
  static let activity = MapSchema(
    "ActivityToken", Self(),
    .optional("token", \.token, .text, default: "the token in the path", "The device token of the activity."))
}

/// A registered device token.
struct TokenRequest {
  var token: String?
  var topic: String?
  var environment: PushEnvironment?
  var state = SingleToken.State.online
  var since: Int64?

  static let schema = MapSchema(
    "TokenRequest", TokenRequest(),
    .optional("token", \.token, .text, "The device token in hexadecimal."),
    .optional("topic", \.topic, .text, default: "any", "The only topic that the token is valid for."),
    .optional("environment", \.environment, .word, default: "both", "The only environment that it is valid for."),
    .defaulted("state", \.state, .word, "The state of the token."),
    .optional("since", \.since, .time, default: "now", "The time since which the token has the state."))
}

/// The channel to subscribe to.
struct SubscriptionRequest {
  var channel = ""
  var bundleID: String?
  var environment: PushEnvironment?

  static let schema = MapSchema(
    "SubscriptionRequest", SubscriptionRequest(),
    .required("channel", \.channel, .text, example: "dHN0LXNyY2gtY2hubA==", "The channel id, in base64."),
    .optional("bundle_id", \.bundleID, .text, "Needed if several apps have such a channel."),
    .optional("environment", \.environment, .word, "The environment of the channel."))
}

/// An app in the body of a request.
struct App {
  let bundleID: String
  let environment: PushEnvironment?

  /// - Throws: `Problem` (400) if the body has no valid bundle id.
  init(_ body: DeviceActionRequest) throws(Problem) {
    bundleID = body.bundleID
    if let (message, hint) = BundleID.problem(with: bundleID) {
      throw .badRequest(message, hint: hint.prefix(1).uppercased() + hint.dropFirst() + ".")
    }
    environment = body.environment
  }
}
