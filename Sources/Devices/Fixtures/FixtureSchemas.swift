package import APNSMockRules
internal import APNSMockNotation

/// The values that a fixture file may omit.
package struct FixtureDefaults: Sendable {
  /// The environment of apps on devices and of channels.
  package var environment: PushEnvironment
  /// The team that owns the apps.
  package var teamID: String

  /// Creates defaults.
  package init(environment: PushEnvironment, teamID: String) {
    self.environment = environment
    self.teamID = teamID
  }
}

/// The maps of a fixture file.
struct FixtureSchemas: Sendable {
  let app: MapSchema<AppTable.App>
  let device: MapSchema<DeviceDescription>
  let channel: MapSchema<ChannelDescription>

  /// The schemas for writing and describing fixtures, which do not depend on the defaults.
  static let standard = FixtureSchemas(FixtureDefaults(environment: .sandbox, teamID: ""))

  init(_ defaults: FixtureDefaults) {
    let bundleID = "The bundle id, without the suffix of a push type."
    app = MapSchema(
      "app", AppTable.App(bundleID: "", teamID: defaults.teamID),
      .required("bundle_id", \.bundleID, .bundleID, example: "com.example.app", bundleID),
      .defaulted(
        "team_id", \.teamID, .teamID, default: "MOCKTEAM01, the server's own team", "The team that owns the app."),
      .defaulted("broadcast", \.hasBroadcast, .flag, "Whether the app has the broadcast capability."))
    let installation = MapSchema(
      "installation", InstallationDescription(bundleID: "", environment: defaults.environment),
      .required("bundle_id", \.bundleID, .bundleID, example: "com.example.app", bundleID),
      .defaulted(
        "environment", \.environment, .environment, default: "the server's", "The environment of the tokens."),
      .defaulted(
        "state", \.state, .word,
        "Whether notifications are enabled, were disabled by the user, or the app was force-quit or removed."),
      .defaulted(
        "tokens", \.tokens, .tokens, default: "none",
        "The device tokens by push type; liveactivity_start is the push-to-start token of Live Activities. Several of a type are a list."
      ))
    device = MapSchema(
      "device", DeviceDescription(id: ""),
      .required("id", \.id, .deviceID, example: "anna", "The name of the device in tests and on the page."),
      .defaulted("state", \.state, .word, "The connection of the device to APNs."),
      .defaulted("apps", \.apps, .list(.map(installation)), default: "none", "The apps on the device."))
    channel = MapSchema(
      "channel",
      ChannelDescription(bundleID: "", environment: defaults.environment, id: "", messageStoragePolicy: 0),
      .required(
        "bundle_id", \.bundleID, .bundleID, example: "com.example.app",
        "The app, without the suffix of a push type."),
      .defaulted("environment", \.environment, .environment, default: "the server's", "The environment."),
      .required("id", \.id, .channelID, example: "\"dHN0LXNyY2gtY2hubA==\"", "The channel id."),
      .required(
        "message_storage_policy", \.messageStoragePolicy, .integer(0...1), example: "0",
        "Whether the newest message is stored for devices that are offline: 0 or 1."))
  }

  /// A description of the whole file, whose lists are read element by element.
  var description: MapDescription {
    MapDescription(
      name: "fixtures",
      fields: [
        FieldDescription(
          FixtureReader.Section.apps.rawValue, .list(.map(app.description)), default: "any",
          "The apps that are known."),
        FieldDescription(
          FixtureReader.Section.devices.rawValue, .list(.map(device.description)),
          "The devices with their apps and tokens."),
        FieldDescription(
          FixtureReader.Section.channels.rawValue, .list(.map(channel.description)),
          "The broadcast channels."),
      ])
  }
}

// MARK: - Values

extension BundleID {
  /// Returns what prevents a text from being a bundle id, and how to correct it; nil for a valid one.
  package static func problem(with text: String) -> (message: String, hint: String)? {
    guard text.withBytes({ isWellFormed($0) }) else {
      return (
        "\"\(text.shortened)\" is not a bundle id",
        "it has 1 to 155 letters, digits, dots and hyphens, such as com.example.app"
      )
    }
    guard let type = PushType(suffixOf: text) else { return nil }
    return (
      "\"\(text)\" ends in \(type.topicSuffix), the suffix of the topic for \(type.text) pushes",
      "write \(text.dropLast(type.topicSuffix.count)); the type of a token determines the suffix"
    )
  }
}

extension Schema<String> {
  fileprivate static let bundleID = text(pattern: "^[A-Za-z0-9._-]{1,155}$", BundleID.problem)

  fileprivate static let teamID = text(pattern: "^[A-Za-z0-9]{10}$") { text in
    guard text.utf8.count != 10 || !text.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }) else { return nil }
    return ("\"\(text.shortened)\" is not a team id", "it has ten letters and digits, such as MOCKTEAM01")
  }

  fileprivate static let deviceID = text(
    pattern: "^(?!([0-9A-Fa-f]+|notifications)$)[A-Za-z][A-Za-z0-9_-]{0,63}$"
  ) { text in
    guard !DeviceDescription.isID(text) else { return nil }
    return (
      "\"\(text.shortened)\" is not the id of a device",
      "it begins with a letter, has up to 64 letters, digits, _ and -, and is neither hexadecimal nor \"notifications\", such as anna or phone-1"
    )
  }

  fileprivate static let deviceToken = text(pattern: "^([0-9A-Fa-f]{2}){1,200}$") { text in
    guard !DeviceToken.isWellFormed(text) else { return nil }
    return (
      "\"\(text.shortened)\" is not a device token", "it is an even number of hexadecimal digits, 2 to 400 of them"
    )
  }

  fileprivate static let channelID = text(pattern: "^[A-Za-z0-9+/]+={0,2}$") { text in
    guard !ChannelDescription.isID(text) else { return nil }
    return (
      "\"\(text.shortened)\" is not a channel id", "it is base64 with padding, such as dHN0LXNyY2gtY2hubA=="
    )
  }
}

extension Schema<PushEnvironment> {
  /// An environment; Xcode's name of the sandbox is accepted.
  fileprivate static let environment = word(PushEnvironment.allCases, synonyms: ["development": .sandbox])
}

extension Schema<Int64?> {
  /// A time that the server's clock can have, in milliseconds since 1970; nil for none.
  fileprivate static let pastTime = Schema(
    form: .time,
    parse: { parser, node in
      guard let scalar = parser.parseScalar(node, as: .anyText) else { return nil }
      if let time = TimestampFormat.milliseconds(scalar.text) { return .some(time) }
      parser.fail(
        node, "\"\(scalar.text.shortened)\" is not a time",
        hint: "write it as 2026-01-31T12:00:00Z, with a day that exists (RFC 3339)")
      return nil
    }, write: { time, writer in time.flatMap(TimestampFormat.text).map { writer.string($0) } ?? writer.null() })
}

extension Schema<[TokenDescription]> {
  private static let kinds = Dictionary(uniqueKeysWithValues: TokenKind.allCases.map { ($0.text, $0) })

  /// A token with further properties; a valid token is usually written as a string.
  private static let detailed = MapSchema(
    "token", TokenDescription(kind: .alert, token: ""),
    .required("token", \.token, .deviceToken, example: "\"740f…\"", "The device token."),
    .defaulted(
      "expired_at", \.expiredAt, .pastTime, default: "not expired",
      "When the token expired, such as that of an ended Live Activity: pushes get 410 ExpiredToken."),
    .defaulted(
      "unregistered_at", \.unregisteredAt, .pastTime, default: "it was not",
      "When the token was unregistered on its own: pushes get 410 Unregistered."))

  private static let token = Schema<TokenDescription>(
    form: .either(Schema<String>.deviceToken.form, .map(detailed.description)),
    parse: { parser, node in
      if case .map = node.content { return detailed.parse(node, parser) }
      return Schema<String>.deviceToken.parse(parser, node).map { TokenDescription(kind: .alert, token: $0) }
    },
    write: { token, writer in
      guard !token.isValid else { return writer.string(token.token) }
      writer.object { detailed.writeMembers(of: token, to: &$0) }
    })

  /// Device tokens by push type.
  static let tokens = Schema(
    form: .map(
      MapDescription(
        name: "tokens",
        fields: kinds.keys.sorted().map { FieldDescription($0, .either(token.form, .list(token.form)), "") })),
    parse: { parser, node in
      guard let entries = parser.parseEntries(node) else { return nil }
      var tokens: [TokenDescription] = []
      for entry in entries {
        guard let kind = kinds[entry.key] else {
          parser.failUnknown(
            entry.key, at: entry.position, node.path(of: entry.key), among: kinds.keys.sorted(),
            "unknown push type \"\(entry.key.shortened)\"")
          continue
        }
        for node in parser.parseListOrValue(node.member(entry)) ?? [] {
          guard let parsed = token.parse(parser, node) else { continue }
          tokens.append(
            TokenDescription(
              kind: kind, token: parsed.token.lowercased(), expiredAt: parsed.expiredAt,
              unregisteredAt: parsed.unregisteredAt))
        }
      }
      return tokens
    },
    write: { tokens, writer in
      writer.object { writer in
        for kind in TokenKind.allCases {
          let tokens = tokens.filter { $0.kind == kind }
          guard let first = tokens.first else { continue }
          writer.name(kind.text)
          if tokens.count == 1 { token.write(first, &writer) } else { Schema.list(token).write(tokens, &writer) }
        }
      }
    })
}
