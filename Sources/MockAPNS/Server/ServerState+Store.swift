import APNSMockRules
import APNSMockDevices
import APNSMockFaultModel
import APNSMockFaults
import APNSMockHTTPMessage
import APNSMockInbox
import Logging
import NIOConcurrencyHelpers
import Synchronization
import APNSMockTLSEngine

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The rows of a store that keep the state of a server, apart from the profile and the rules (`StoredFaults`).
///
/// Devices, apps, channels and keys have a row each if they differ from those that the server was started with; `removed` marks
/// one that was deleted.
enum StateRow {
  /// The server's clock; missing if it shows the machine's time.
  static let clock = "clock"
  /// The numbers of generated device tokens and channel ids, so that none is generated again.
  static let generated = "generated"
  /// The id of the inbox, by which links name it.
  static let inbox = "inbox"
  /// The fixture files that the server was started with.
  static let fixtures = "fixtures"

  static let device = "device/"
  static let token = "token/"
  static let app = "app/"
  static let channel = "channel/"
  static let key = "key/"

  static let removed = "removed"

  /// Whether a row is of a device, of a token without one, or of an app.
  static func isOfDevices(_ name: String) -> Bool { [device, token, app].contains { name.hasPrefix($0) } }

  /// Returns the rest of a name that begins with `prefix`.
  static func rest(of name: String, after prefix: String) -> String? {
    name.hasPrefix(prefix) ? String(name.dropFirst(prefix.count)) : nil
  }

  static func name(of channel: ChannelName) -> String {
    "\(Self.channel)\(channel.environment.rawValue)/\(channel.bundleID)/\(channel.id)"
  }

  /// The channel of a row; the bundle id has no slash, an id in Base64 may.
  static func channel(_ name: String) -> ChannelName? {
    let parts = rest(of: name, after: channel)?.split(separator: "/", maxSplits: 2) ?? []
    guard parts.count == 3, let environment = PushEnvironment(rawValue: String(parts[0])) else { return nil }
    return ChannelName(bundleID: String(parts[1]), environment: environment, id: String(parts[2]))
  }
}

private struct StoredClock: Codable {
  /// The time of a frozen clock in milliseconds since 1970; nil for one that runs.
  var frozenAt: Int64?
  /// How far it is ahead of the machine's clock, in milliseconds.
  var offset: Int64
}

private struct StoredCounts: Codable {
  var deviceTokens: UInt64
  var channels: UInt64
}

private struct StoredKey: Codable {
  var teamID: String
  var environment: PushEnvironment?
  var topics: [String]?
  var teamTopics: [String]?
  var relatedKeyID: String?
  var publicKey: String
}

extension ServerState {
  /// Continues with the state that the store has, and keeps that of this server there from now on.
  ///
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  func continueFromStore(_ logger: Logger) throws(StoreUnavailable) {
    guard let writer = inbox.writer else { return }
    var rows: [String: String]
    do {
      rows = try writer.store.serverState()
    } catch {
      throw StoreUnavailable(problem: String(describing: error))
    }
    writer.serverState.start(with: rows.keys) { [weak self] changed in self?.storedRows(changed) ?? [:] }
    // When the profile of the start has begun.
    writer.serverState.didChange(FaultControl.row)
    if rows[StateRow.fixtures, default: ""] != initialFixtures.withLockedValue({ $0 }) {
      func isOfFixtures(_ name: String) -> Bool { StateRow.isOfDevices(name) || name.hasPrefix(StateRow.channel) }
      let outdated = rows.keys.filter(isOfFixtures)
      if !outdated.isEmpty {
        logger.notice(
          "the former server was started with other fixtures: its devices, apps and channels are not continued")
      }
      for name in outdated { rows[name] = nil }
      writer.serverState.remove(where: isOfFixtures)
      writer.serverState.didChange(StateRow.fixtures)
    }
    if let id = rows[StateRow.inbox], id.utf8.count == 8 {
      inbox.continueID(id)
    } else {
      writer.serverState.didChange(StateRow.inbox)
    }
    restoreClock(rows)
    restoreFixtures(rows)
    restoreKeys(rows)
    faults.restore(rows, isTakeover: writer.store.isRemote)
    let recent = inbox.continueFormerServer(identifiesByID: faults.selection.profile.pushIdentity == .apnsID)
    if !devices.isEmpty {
      inbox.forEachDeliveryOfStorage(before: recent.first?.seq ?? .max) { restoreDelivery(of: $0) }
      for record in recent { restoreDelivery(of: record) }
    }
    inbox.runs.restore(
      rows.filter { $0.key.hasPrefix(RunList.rowPrefix) }.sorted { $0.key < $1.key }.map(\.value), now: clock.now,
      lastSeq: inbox.snapshot().lastSeq
    ) { for row in $0 { writer.serverState.didChange(row) } }
    clock.whenChanged { writer.serverState.didChange(StateRow.clock) }
    devices.reportChanges { change in
      switch change {
      case .device(let id): writer.serverState.didChange(StateRow.device + id)
      case .token(let token): writer.serverState.didChange(StateRow.token + token)
      }
    }
    channels.reportChanges { writer.serverState.didChange(StateRow.name(of: $0), StateRow.generated) }
  }

  /// Notes that a part of the state has changed that the store keeps.
  package func didChange(key id: String) { inbox.writer?.serverState.didChange(StateRow.key + id) }

  // MARK: - Storing

  private func storedRows(_ changed: Set<String>) -> StoredServerState.Rows {
    var rows = StoredServerState.Rows(uniqueKeysWithValues: changed.map { ($0, storedRow($0)) })
    // In each batch, so that views notice all changes.
    if changed.contains(where: { $0.hasPrefix(RunList.rowPrefix) }) { rows[RunList.versionRow] = RunList.newVersion() }
    rows.merge(faults.counters.takeChangedRows()) { _, newer in newer }
    return rows
  }

  private func storedRow(_ name: String) -> String? {
    switch name {
    case StateRow.clock:
      let mode = clock.mode
      guard mode == .frozen || clock.machineOffset != 0 else { return nil }
      return StoredClock(frozenAt: mode == .frozen ? clock.now : nil, offset: clock.machineOffset).rowText
    case StateRow.generated:
      return StoredCounts(deviceTokens: deviceTokens.count.load(ordering: .relaxed), channels: channels.idCount).rowText
    case StateRow.inbox: return inbox.id
    case StateRow.fixtures: return initialFixtures.withLockedValue { $0 }
    case FaultControl.row: return faults.storedRow(name)
    default: break
    }
    if let id = StateRow.rest(of: name, after: StateRow.device) {
      return devices.stored(device: id)?.rowText ?? StateRow.removed
    }
    if let token = StateRow.rest(of: name, after: StateRow.token) {
      return devices.stored(token: token)?.rowText ?? StateRow.removed
    }
    if let id = StateRow.rest(of: name, after: StateRow.app) {
      return apps.load()[id]?.rowText
    }
    if let channel = StateRow.channel(name) {
      return channels.storagePolicy(of: channel).map { String($0.rawValue) } ?? StateRow.removed
    }
    if let id = StateRow.rest(of: name, after: StateRow.key) {
      guard let key = keys.load().keys[id] else { return StateRow.removed }
      return key.publicKeyPEM.flatMap { pem in
        StoredKey(
          teamID: key.teamID, environment: key.environment, topics: key.topics, teamTopics: key.teamTopics,
          relatedKeyID: key.relatedKeyID, publicKey: pem
        ).rowText
      }
    }
    if name.hasPrefix(RunList.rowPrefix) { return inbox.runs.storedRow(name) }
    return faults.storedRow(name)
  }

  // MARK: - Restoring

  private func restoreClock(_ rows: [String: String]) {
    guard let stored = rows[StateRow.clock].flatMap({ StoredClock(row: $0) }) else { return }
    if let time = stored.frozenAt { clock.freeze(at: time) } else { clock.advance(by: stored.offset) }
  }

  private func restoreFixtures(_ rows: [String: String]) {
    var storedDevices: [String: StoredDevice?] = [:]
    var storedTokens: [String: StoredDevice?] = [:]
    var storedApps: [AppTable.App] = []
    var storedChannels: [ChannelDescription] = []
    for (name, text) in rows {
      // What is damaged leaves that of the start as it is.
      if let id = StateRow.rest(of: name, after: StateRow.device) {
        if text == StateRow.removed { storedDevices[id] = .some(nil) }
        if let device = StoredDevice(row: text) { storedDevices[id] = device }
      } else if let token = StateRow.rest(of: name, after: StateRow.token) {
        if text == StateRow.removed { storedTokens[token] = .some(nil) }
        if let device = StoredDevice(row: text) { storedTokens[token] = device }
      } else if name.hasPrefix(StateRow.app) {
        if let app = AppTable.App(row: text) { storedApps.append(app) }
      } else if let channel = StateRow.channel(name) {
        if text == StateRow.removed { channels.remove(channel) }
        if let policy = Int(text), ChannelDescription.isID(channel.id), BundleID.problem(with: channel.bundleID) == nil
        {
          storedChannels.append(
            ChannelDescription(
              bundleID: channel.bundleID, environment: channel.environment, id: channel.id, messageStoragePolicy: policy
            ))
        }
      }
    }
    devices.restore(devices: storedDevices, tokens: storedTokens)
    apps.update { apps in for app in storedApps { apps.set(app) } }
    _ = try? channels.add(storedChannels.sorted { $0.id < $1.id })
    if let counts = rows[StateRow.generated].flatMap({ StoredCounts(row: $0) }) {
      // At most so many that the next ones are no overflow, whatever the store contains.
      deviceTokens.count.max(min(counts.deviceTokens, 1 << 48), ordering: .relaxed)
      channels.didGenerate(min(counts.channels, 1 << 48))
    }
  }

  /// Lets a device store or show a push again that the former server has accepted.
  private func restoreDelivery(of record: borrowing Record) {
    guard record.kind == .push, let state = record.delivery, let facts = record.verdict?.facts else { return }
    let (request, settings) = (record.request, activePolicy.load().settings)
    request.headers.bytes.withUnsafeBytes { headers in
      guard let token = facts.deviceToken,
        let match = devices.match(headers[token], now: record.receivedAt)
      else { return }
      var push = request.body.withUnsafeBytes {
        AcceptedPush(facts, headers: headers, body: $0, to: match, at: record.receivedAt)
      }
      push.acceptedAt = record.acceptedAt
      devices.restore(push, seq: record.seq, state, receivedAt: record.receivedAt, settings: settings)
    }
  }

  private func restoreKeys(_ rows: [String: String]) {
    for (name, text) in rows {
      guard let id = StateRow.rest(of: name, after: StateRow.key) else { continue }
      if text == StateRow.removed {
        keys.update { $0 = $0.removing(id) }
      } else if let stored = StoredKey(row: text), let publicKey = try? ES256PublicKey(pem: stored.publicKey) {
        _ = keys.add(
          TrustedKey(
            keyID: id, teamID: stored.teamID, publicKey: publicKey,
            environment: stored.environment, topics: stored.topics,
            teamTopics: stored.teamTopics, relatedKeyID: stored.relatedKeyID))
      }
    }
  }
}
