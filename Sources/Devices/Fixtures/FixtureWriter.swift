package import APNSRules
internal import Notation

/// Writes fixtures as a JSON document in pieces, so that a million devices need no memory.
package struct FixtureWriter {
  private var hasElement = false

  /// Creates a writer.
  package init() {}

  /// Returns the beginning of the document: the apps, and the start of the list of devices.
  package func beginning(apps: [AppTable.App]) -> [UInt8] {
    var writer = JSONWriter()
    writer.array { writer in
      for app in apps { FixtureMap<AppTable.App>.app.write(app, to: &writer) }
    }
    return Array(#"{"apps":"#.utf8) + writer.bytes + Array(#","devices":["#.utf8)
  }

  /// Returns the next devices of the document, one per line.
  package mutating func devices(_ devices: some Sequence<DeviceDescription>) -> [UInt8] {
    var text: [UInt8] = []
    for device in devices {
      var writer = JSONWriter()
      FixtureMap<DeviceDescription>.device.write(device, to: &writer)
      text += (hasElement ? ",\n" : "\n").utf8
      text += writer.bytes
      hasElement = true
    }
    return text
  }

  /// Returns the end of the document: the channels.
  package func end(channels: [ChannelDescription]) -> [UInt8] {
    var writer = JSONWriter()
    writer.array { writer in
      for channel in channels { FixtureMap<ChannelDescription>.channel.write(channel, to: &writer) }
    }
    return Array(#"],"channels":"#.utf8) + writer.bytes + Array("}\n".utf8)
  }
}

/// The JSON Schema (draft 2020-12) of fixture files, generated from the syntax that the reader uses.
package enum FixtureSchema {
  /// The path under which servers publish the schema.
  package static let path = "/schema/fixtures.json"

  /// The schema as JSON in one line.
  package static let text: String = {
    var writer = JSONWriter(capacity: 8192)
    writer.object { writer in
      writer.member("$schema", "https://json-schema.org/draft/2020-12/schema")
      writer.member("$id", path)
      writer.member("title", "Fixtures of apns-mock")
      writer.member("type", "object")
      writer.member("additionalProperties", false)
      writer.objectMember("properties") { writer in
        for (section, name, summary) in [
          (FixtureReader.Section.apps, FixtureMap<AppTable.App>.app.name, "The apps that are known. Default: any."),
          (.devices, FixtureMap<DeviceDescription>.device.name, "The devices with their apps and tokens."),
          (.channels, FixtureMap<ChannelDescription>.channel.name, "The broadcast channels."),
        ] {
          writer.objectMember(section.rawValue) { writer in
            writer.member("description", summary)
            writer.member("type", ["array", "null"])
            writer.objectMember("items") { $0.member("$ref", "#/$defs/\(name)") }
          }
        }
      }
      writer.objectMember("$defs") { writer in
        FixtureMap<AppTable.App>.app.writeDefinition(to: &writer)
        FixtureMap<DeviceDescription>.device.writeDefinition(to: &writer)
        FixtureMap<InstallationDescription>.installation.writeDefinition(to: &writer)
        FixtureMap<TokenDescription>.token.writeDefinition(to: &writer)
        FixtureValue<[TokenDescription]>.writeDefinition(to: &writer)
        FixtureMap<ChannelDescription>.channel.writeDefinition(to: &writer)
      }
    }
    return String(decoding: writer.bytes, as: UTF8.self)
  }()
}

/// A commented fixture file.
package enum FixtureSample {
  /// The text, which can be loaded without problems.
  package static let yaml = """
    # Fixtures of apns-mock: the apps, devices and channels that exist. Load them with
    #
    #   apns-mock serve --fixtures FILE            at the start, and again with each reset
    #   apns-mock fixtures load FILE               into a running server; devices are replaced by id
    #
    # apns-mock fixtures lint FILE checks a file. --devices known rejects every other device token, --topics known every
    # other topic. Files may also be JSON, {"devices": […]}; large ones must.

    # The known apps. Without this list, devices and channels may belong to any app.
    apps:
      - bundle_id: com.example.app
        team_id: MOCKTEAM01       # the team of the server's own provider key, which is the default
        broadcast: true           # the capability; without it: FeatureNotEnabled. Default: false

    devices:
      - id: anna                  # a name for tests: a letter, then letters, digits, _ and -
        state: online             # online, offline or power_restricted. Default: online
        apps:
          - bundle_id: com.example.app
            environment: sandbox  # sandbox or production. Default: the server's --environment
            state: enabled        # enabled, disabled (notifications are off) or removed. Default: enabled
            tokens:               # by push type; several of a type are a list
              alert: "a100000000000000000000000000000000000000000000000000000000000001"
              voip: "a100000000000000000000000000000000000000000000000000000000000002"
              liveactivity:
                - "a100000000000000000000000000000000000000000000000000000000000003"
                # The token of a Live Activity that has ended: 410 ExpiredToken.
                - token: "a100000000000000000000000000000000000000000000000000000000000004"
                  expired_at: 2026-01-31T12:00:00Z

      - id: bert
        state: offline            # stores the newest push of each app, until bert is online
        apps:
          - bundle_id: com.example.app
            environment: sandbox
            tokens:
              alert: "b200000000000000000000000000000000000000000000000000000000000001"

    channels:
      - bundle_id: com.example.app
        environment: sandbox
        id: "dHN0LXNyY2gtY2hubA=="
        message_storage_policy: 1 # 1: the newest message is stored for devices that are offline; 0: none is

    """
}
