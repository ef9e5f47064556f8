/// The syntax of bundle ids.
package enum BundleID {
  /// Returns whether `bytes` can be a bundle id: 1 to 155 letters, digits, dots, hyphens and underscores.
  package static func isWellFormed(_ bytes: UnsafeRawBufferPointer) -> Bool {
    (1...155).contains(bytes.count)
      && bytes.allSatisfy { byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "._-".utf8.contains(byte)
        }
      }
  }
}

/// The apps that are known to the server, by bundle id.
package struct AppTable: Sendable {
  /// An app.
  package struct App: Sendable, Equatable, Codable {
    /// The bundle id, without a push type's suffix.
    package var bundleID: String
    /// The team that owns the app; its provider tokens may push to the app's topics.
    package var teamID: String
    /// Whether the app has the broadcast capability (Protocol.md, section 10).
    package var hasBroadcast: Bool

    /// Creates an app.
    package init(bundleID: String, teamID: String, hasBroadcast: Bool = false) {
      self.bundleID = bundleID
      self.teamID = teamID
      self.hasBroadcast = hasBroadcast
    }
  }

  private var byBundleID: [String: App] = [:]

  /// Creates a table; of apps with equal bundle ids the last one counts.
  package init(_ apps: [App] = []) {
    for app in apps { set(app) }
  }

  /// All apps, sorted by bundle id.
  package var apps: [App] { byBundleID.values.sorted { $0.bundleID < $1.bundleID } }

  /// Returns up to `limit` bundle ids of the apps of a team; nil for those of all teams.
  func bundleIDs(of team: String?, limit: Int) -> [String] {
    Array(byBundleID.values.lazy.filter { team == nil || $0.teamID == team }.map(\.bundleID).prefix(limit))
  }

  /// The number of apps.
  package var count: Int { byBundleID.count }

  /// Adds an app or replaces the one with its bundle id.
  package mutating func set(_ app: App) { byBundleID[app.bundleID] = app }

  /// The app with this bundle id; nil if it is not known.
  package subscript(bundleID: String) -> App? { byBundleID[bundleID] }
}
