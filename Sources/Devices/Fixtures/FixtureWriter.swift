package import APNSMockRules
internal import NIOConcurrencyHelpers
package import APNSMockNotation

/// Writes what is registered as a JSON document that `FixtureReader` accepts, piece by piece, so that a million devices need no
/// memory.
package struct FixtureWriter: Sendable {
  /// The number of devices in a piece.
  private static let pieceSize = 200

  private let apps: [AppTable.App]
  private let channels: [ChannelDescription]
  /// The devices at one time, so that none is written twice if one is replaced while they are written.
  private let devices: DeviceTables
  /// The position of the next device; nil after the last one.
  private var position: Int?
  private var hasBegun = false
  private var hasDevice = false
  private var hasEnded = false

  /// Creates a writer.
  ///
  /// - Parameter teamID: The team of apps that have devices or channels, but are not in `apps`.
  /// - Throws: `FileFailure` if there are more apps than a file may have.
  package init(
    apps: [AppTable.App], devices: DeviceRegistry, channels: [ChannelDescription], teamID: String
  ) throws(FileFailure) {
    self.channels = channels
    self.devices = devices.state.withLockedValue { $0.tables }
    position = 0
    // A file with apps must have all of them. Those that are not known have the capability (Protocol.md, section 10.2).
    let used = apps.isEmpty ? [] : self.devices.appNames.union(channels.map(\.bundleID))
    let others = used.subtracting(apps.map(\.bundleID)).sorted()
    self.apps = (apps + others.map { AppTable.App(bundleID: $0, teamID: teamID, hasBroadcast: true) })
      .sorted { $0.bundleID < $1.bundleID }
    guard self.apps.count <= FixtureReader.appLimit else {
      throw FileFailure([
        FileProblem(
          file: "", "there are \(self.apps.count) apps, and a fixture file may have \(FixtureReader.appLimit)",
          hint: "remove devices and channels of apps that are no longer needed")
      ])
    }
  }

  /// Returns the next piece of the document; nil after the last one.
  package mutating func next() -> [UInt8]? {
    if !hasBegun {
      hasBegun = true
      return Array(#"{"devices":["#.utf8)
    }
    if let start = position {
      let page = devices.devices(from: start, limit: Self.pieceSize)
      position = page.next
      return text(page.items)
    }
    guard !hasEnded else { return nil }
    hasEnded = true
    return Array(#"],"apps":"#.utf8) + Self.list(apps, FixtureSchemas.standard.app) + Array(#","channels":"#.utf8)
      + Self.list(channels, FixtureSchemas.standard.channel) + Array("}\n".utf8)
  }

  /// Returns devices, one per line.
  private mutating func text(_ devices: [DeviceDescription]) -> [UInt8] {
    var text: [UInt8] = []
    for device in devices {
      var writer = JSONWriter()
      writer.object { device.writeMembers(to: &$0) }
      text += (hasDevice ? ",\n" : "\n").utf8
      text += writer.bytes
      hasDevice = true
    }
    return text
  }

  private static func list<Element>(_ elements: [Element], _ map: MapSchema<Element>) -> [UInt8] {
    var writer = JSONWriter()
    writer.array { writer in
      for element in elements { writer.object { map.writeMembers(of: element, to: &$0) } }
    }
    return writer.bytes
  }
}

extension DeviceDescription {
  /// Writes the device's members, with the keys of a fixture file.
  package func writeMembers(to writer: inout JSONWriter) {
    FixtureSchemas.standard.device.writeMembers(of: self, to: &writer)
  }
}

extension [TokenDescription] {
  /// Writes the tokens by push type, as in a fixture file.
  package func write(to writer: inout JSONWriter) { Schema<[TokenDescription]>.tokens.write(self, &writer) }
}

/// The JSON Schema (draft 2020-12) of fixture files, generated from the schemas that the reader uses.
package enum FixtureSchema {
  /// The path under which servers publish the schema.
  package static let path = "/schema/fixtures.json"

  /// The schema as JSON in one line.
  package static let text = JSONSchemaWriter.text(
    title: "Fixtures of apns-mock", path: path, root: FixtureSchemas.standard.description, allowsNull: true)
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
            tokens:               # by push type, or liveactivity_start for a push-to-start token; several are a list
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
