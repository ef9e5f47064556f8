package import APNSMockRules
package import APNSMockDevices
package import APNSMockInbox
import NIOConcurrencyHelpers
package import APNSMockNotation

extension FixtureDefaults {
  /// The defaults of a server's fixtures.
  package init(_ configuration: MockServer.Configuration) {
    self.init(environment: configuration.environment, teamID: CertificateFolder.teamID)
  }
}

extension ServerState {
  /// Loads fixtures, all or none: devices are replaced by id, apps by bundle id, channels by id.
  ///
  /// - Parameter progress: Called now and then with the number of devices and the fraction of the text that was read.
  /// - Throws: `FileFailure` with all problems; then nothing has changed.
  package func load(
    _ documents: [FixtureDocument], limits: YAMLNode.Limits = FixtureReader.localFile,
    progress: (Int, Double) -> Void = { _, _ in }
  ) throws(FileFailure) -> FixtureReader.Contents {
    let reader = FixtureReader(defaults: FixtureDefaults(configuration), limits: limits, knownApps: apps.load())
    var contents = FixtureReader.Contents()
    try FileFailure.converting {
      try devices.load(now: clock.now) { loader in
        contents = try reader.read(documents, progress: progress) { device throws(DeviceError) in
          try loader.add(device)
        }
        try checkNumber(of: contents.apps, from: documents)
        // Last, because nothing may change if this or an earlier step throws.
        try add(contents.channels, from: documents)
      }
    }
    apps.update { apps in
      for app in contents.apps { apps.set(app) }
    }
    for app in contents.apps { inbox.writer?.serverState.didChange(StateRow.app + app.bundleID) }
    return contents
  }

  /// Throws if there would be too many known apps, from these and earlier documents.
  private func checkNumber(
    of added: [AppTable.App], from documents: [FixtureDocument]
  ) throws(FileFailure) {
    let known = apps.load()
    let limit = FixtureReader.appLimit
    guard known.count + added.count > limit, known.count + added.count(where: { known[$0.bundleID] == nil }) > limit
    else { return }
    throw FileFailure([
      FileProblem(
        file: documents.last?.name ?? "",
        "there would be more than \(limit) apps, the limit of this server: \(known.count) are known already",
        hint: "forget those that were loaded after the start: apns-mock reset")
    ])
  }

  private func add(_ channels: [ChannelDescription], from documents: [FixtureDocument]) throws(FileFailure) {
    do throws(ChannelLimit) {
      try self.channels.add(channels)
    } catch {
      let message =
        switch error {
        case .ofApp(let count): "an app would have more than \(count) channels in one environment, APNs' limit"
        case .ofServer(let count): "there would be more than \(count) channels, the limit of this server"
        case .apps(let count): "there would be channels of more than \(count) apps, the limit of this server"
        }
      throw FileFailure([
        FileProblem(
          file: documents.last?.name ?? "", message,
          hint: "remove channels that are no longer needed: apns-mock channel rm")
      ])
    }
  }

  /// Loads the fixture files of the configuration, which a reset restores.
  ///
  /// - Throws: `FileFailure` with all problems.
  func loadInitialFixtures(progress: (Int, Double) -> Void) throws(FileFailure) {
    guard !configuration.fixtures.isEmpty else { return }
    var documents: [FixtureDocument] = []
    for path in configuration.fixtures { documents.append(try FixtureDocument(path: path)) }
    _ = try load(documents, progress: progress)
    devices.saveAsInitial()
    channels.saveAsInitial()
    initialApps.withLockedValue { $0 = apps.load() }
    initialFixtures.withLockedValue {
      $0 = documents.map { Hexadecimal.text($0.hash, digits: 16) }.joined(separator: " ")
    }
  }

  /// Restores the devices and apps that there were after the start.
  func resetDevices() {
    devices.reset()
    apps.update { $0 = initialApps.withLockedValue { $0 } }
    inbox.writer?.serverState.remove(where: StateRow.isOfDevices)
  }

  /// Restores the channels that there were after the start.
  func resetChannels() {
    channels.reset()
    inbox.writer?.serverState.remove { $0.hasPrefix(StateRow.channel) }
  }

  /// Returns a writer of the present apps, devices and channels.
  ///
  /// - Throws: `FileFailure` if there are more apps than a file may have.
  package func fixtureWriter() throws(FileFailure) -> FixtureWriter {
    try FixtureWriter(
      apps: apps.load().apps, devices: devices, channels: channels.channels(), teamID: CertificateFolder.teamID)
  }
}

extension ServerState {
  /// Returns the channels with an id.
  ///
  /// - Parameters:
  ///   - bundleID: The app; nil for any.
  ///   - environment: The environment; nil for any.
  package func channels(withID id: String, bundleID: String?, environment: PushEnvironment?) -> [ChannelName] {
    channels.channels(of: bundleID, in: environment).filter { $0.id == id }.map { ChannelName($0) }
  }

  /// Returns a new device token of an app. The tokens are repeatable for the same seed.
  package func newDeviceToken() -> String { deviceTokens.next() }

  /// Returns a new device token of a Live Activity.
  package func newActivityToken() -> String { deviceTokens.next(ofActivity: true) }

  /// Returns the `apns-unique-id` in the response to an accepted push; nil if it had none.
  package func uniqueID(of record: borrowing Record) -> String? {
    let connection = record.connection
    guard record.accepted, record.sentResponse.status == 200, connection.environment == .sandbox,
      record.kind != .channel,
      let number = UInt64(connection.id.dropFirst())
    else { return nil }
    var source = IdentifierSource(seed: seed, connection: number, stream: record.stream)
    return source.next(.lowerCase)
  }
}
