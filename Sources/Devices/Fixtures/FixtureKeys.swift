package import APNSRules
internal import HTTPMessage
internal import Notation

extension FixtureMap<AppTable.App> {
  static let app = FixtureMap(
    "app", { AppTable.App(bundleID: "", teamID: $0.teamID) },
    FixtureKey(
      "bundle_id", \.bundleID, .bundleID, isRequired: true, example: "com.example.app",
      "The bundle id, without the suffix of a push type."),
    FixtureKey("team_id", \.teamID, .teamID, "The team that owns the app. Default: MOCKTEAM01, the server's own team."),
    FixtureKey("broadcast", \.hasBroadcast, .flag, "Whether the app has the broadcast capability. Default: false."))
}

extension FixtureMap<DeviceDescription> {
  static let device = FixtureMap(
    "device", { _ in DeviceDescription(id: "") },
    FixtureKey(
      "id", \.id, .deviceID, isRequired: true, example: "anna", "The name of the device in tests and on the page."),
    FixtureKey("state", \.state, .word(), "The connection of the device to APNs. Default: online."),
    FixtureKey("apps", \.apps, .list(of: .installation), "The apps on the device. Default: none."))
}

extension FixtureMap<InstallationDescription> {
  static let installation = FixtureMap(
    "installation", { InstallationDescription(bundleID: "", environment: $0.environment) },
    FixtureKey(
      "bundle_id", \.bundleID, .bundleID, isRequired: true, example: "com.example.app",
      "The bundle id, without the suffix of a push type."),
    FixtureKey("environment", \.environment, .environment, "The environment of the tokens. Default: the server's."),
    FixtureKey(
      "state", \.state, .word(),
      "Whether notifications are enabled, were disabled by the user, or the app was force-quit or removed. Default: enabled."
    ),
    FixtureKey(
      "tokens", \.tokens, .tokens,
      "The device tokens by push type; liveactivity_start is the push-to-start token of Live Activities. Several of a type are a list. Default: none."
    ))
}

extension FixtureMap<TokenDescription> {
  /// A token with further properties; a valid token is usually written as a string.
  static let token = FixtureMap(
    "token", { _ in TokenDescription(kind: .alert, token: "") },
    FixtureKey("token", \.token, .deviceToken, isRequired: true, example: "\"740f…\"", "The device token."),
    FixtureKey(
      "expired_at", \.expiredAt, .pastTime,
      "When the token expired, such as that of an ended Live Activity: pushes get 410 ExpiredToken. Default: not expired."
    ),
    FixtureKey(
      "unregistered_at", \.unregisteredAt, .pastTime,
      "When the token was unregistered on its own: pushes get 410 Unregistered. Default: it was not."))
}

extension FixtureMap<ChannelDescription> {
  static let channel = FixtureMap(
    "channel",
    { ChannelDescription(bundleID: "", environment: $0.environment, id: "", messageStoragePolicy: 0) },
    FixtureKey(
      "bundle_id", \.bundleID, .bundleID, isRequired: true, example: "com.example.app",
      "The app, without the suffix of a push type."),
    FixtureKey("environment", \.environment, .environment, "The environment. Default: the server's."),
    FixtureKey("id", \.id, .channelID, isRequired: true, example: "\"dHN0LXNyY2gtY2hubA==\"", "The channel id."),
    FixtureKey(
      "message_storage_policy", \.messageStoragePolicy, .integer(0...1), isRequired: true, example: "0",
      "Whether the newest message is stored for devices that are offline: 0 or 1."))
}

// MARK: - Values

extension BundleID {
  /// Returns what prevents a text from being a bundle id, and how to correct it; nil for a valid one.
  package static func problem(with text: String) -> (message: String, hint: String)? {
    var bytes = text
    return bytes.withUTF8 { bytes in
      guard isWellFormed(UnsafeRawBufferPointer(bytes)) else {
        return (
          "\"\(text.shortened)\" is not a bundle id",
          "it has 1 to 155 letters, digits, dots and hyphens, such as com.example.app"
        )
      }
      guard let type = PushType(suffixOf: UnsafeRawBufferPointer(bytes)) else { return nil }
      return (
        "\"\(text)\" ends in \(type.topicSuffix), the suffix of the topic for \(type.text) pushes",
        "write \(text.dropLast(type.topicSuffix.count)); the type of a token determines the suffix"
      )
    }
  }
}

extension FixtureValue<String> {
  static let bundleID = text(pattern: "^[A-Za-z0-9._-]{1,155}$", BundleID.problem)

  static let teamID = text(pattern: "^[A-Za-z0-9]{10}$") { text in
    guard text.utf8.count != 10 || !text.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }) else { return nil }
    return ("\"\(text.shortened)\" is not a team id", "it has ten letters and digits, such as MOCKTEAM01")
  }

  static let deviceID = text(pattern: "^(?!([0-9A-Fa-f]+|notifications)$)[A-Za-z][A-Za-z0-9_-]{0,63}$") { text in
    guard !DeviceDescription.isID(text) else { return nil }
    return (
      "\"\(text.shortened)\" is not the id of a device",
      "it begins with a letter, has up to 64 letters, digits, _ and -, and is neither hexadecimal nor \"notifications\", such as anna or phone-1"
    )
  }

  static let deviceToken = text(pattern: "^([0-9A-Fa-f]{2}){1,200}$") { text in
    guard !DeviceToken.isWellFormed(text) else { return nil }
    return (
      "\"\(text.shortened)\" is not a device token", "it is an even number of hexadecimal digits, 2 to 400 of them"
    )
  }

  static let channelID = text(pattern: "^[A-Za-z0-9+/]+={0,2}$") { text in
    guard !ChannelDescription.isID(text) else { return nil }
    return (
      "\"\(text.shortened)\" is not a channel id", "it is base64 with padding, such as dHN0LXNyY2gtY2hubA=="
    )
  }
}

extension FixtureValue<PushEnvironment> {
  /// An environment; Xcode's name of the sandbox is accepted.
  static let environment = word(["development": .sandbox])
}

extension FixtureValue<Int64?> {
  /// A time that the server's clock can have, in milliseconds since 1970; nil for none.
  static let pastTime = FixtureValue(
    read: { node, _ throws(YAMLError) in
      let text = try node.scalar("a time").text
      guard let time = TimestampFormat.milliseconds(text) else {
        throw YAMLError(
          at: node.position, "\"\(text.shortened)\" is not a time",
          hint: "write it as 2026-01-31T12:00:00Z, with a day that exists (RFC 3339)")
      }
      return time
    }, write: { time, writer in time.flatMap(TimestampFormat.text).map { writer.string($0) } ?? writer.null() },
    writeForm: { writer in
      writer.member("type", ["string", "null"])
      writer.member("format", "date-time")
    })
}

extension FixtureValue<[TokenDescription]> {
  private static let kinds = Dictionary(uniqueKeysWithValues: TokenKind.allCases.map { ($0.text, $0) })

  /// Device tokens by push type.
  static let tokens = FixtureValue(
    read: { node, context throws(YAMLError) in
      var tokens: [TokenDescription] = []
      for entry in try node.entries() {
        guard let kind = kinds[entry.key] else {
          context.add(
            YAMLError(
              at: entry.position, "unknown push type \"\(entry.key.shortened)\"",
              hint: FixtureContext.guess(entry.key, among: kinds.keys.sorted())
                ?? "expected one of \(kinds.keys.sorted().joined(separator: ", "))"))
          continue
        }
        if case .list(let elements) = entry.value.content {
          tokens += elements.compactMap { token(kind, $0, context) }
        } else if let token = token(kind, entry.value, context) {
          tokens.append(token)
        }
      }
      return tokens
    },
    write: { tokens, writer in
      writer.object { writer in
        for kind in TokenKind.allCases {
          let tokens = tokens.filter { $0.kind == kind }
          if tokens.isEmpty { continue }
          writer.name(kind.text)
          if tokens.count == 1 {
            write(tokens[0], to: &writer)
          } else {
            writer.array { writer in
              for token in tokens { write(token, to: &writer) }
            }
          }
        }
      }
    },
    writeForm: { writer in
      writer.member("type", "object")
      writer.member("additionalProperties", false)
      writer.objectMember("properties") { writer in
        for kind in kinds.keys.sorted() { writer.objectMember(kind) { $0.member("$ref", "#/$defs/tokens") } }
      }
    })

  private static func token(_ kind: TokenKind, _ node: YAMLNode, _ context: FixtureContext) -> TokenDescription? {
    if case .map = node.content {
      guard var token = FixtureMap<TokenDescription>.token.read(node, context) else { return nil }
      token.kind = kind
      token.token = token.token.lowercased()
      return token
    }
    let text = context.reporting { () throws(YAMLError) in
      try FixtureValue<String>.deviceToken.read(node, context)
    }
    return text.map { TokenDescription(kind: kind, token: $0.lowercased()) }
  }

  private static func write(_ token: TokenDescription, to writer: inout JSONWriter) {
    guard !token.isValid else { return writer.string(token.token) }
    FixtureMap<TokenDescription>.token.write(token, to: &writer)
  }

  /// Writes the definition of the tokens of one push type: a token or a list of them.
  static func writeDefinition(to writer: inout JSONWriter) {
    func writeToken(_ writer: inout JSONWriter) {
      writer.object { FixtureValue<String>.deviceToken.writeForm(&$0) }
      writer.object { $0.member("$ref", "#/$defs/token") }
    }
    writer.objectMember("tokens") { writer in
      writer.arrayMember("anyOf") { writer in
        writeToken(&writer)
        writer.object { writer in
          writer.member("type", "array")
          writer.objectMember("items") { $0.arrayMember("anyOf", writeToken) }
        }
      }
    }
  }
}
