import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import APNSMockInbox
import Logging
import APNSMockNotation

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The active profile and the added rules as a store keeps them. Times are in nanoseconds since 1970, because monotonic ones
/// mean nothing to another process.
struct StoredFaults: Codable {
  struct AddedRule: Codable {
    /// The rule in JSON.
    var text: String
    var addedAt: Int64
    var endsAt: Int64?
    /// What the rule is bound to, and the profile that it is of; nil for nothing.
    var scope: String?
    var profile: String?
  }

  /// The profile and the seed that the server was started with. A server that is started with others uses these.
  var start: String
  var profile: ProfileSource
  var parameters: [String: String]
  var seed: UInt64
  var activatedAt: Int64
  var endsAt: Int64?
  var isPaused: Bool
  /// Whether the profile, its parameters or the pause were set since the start.
  var isChanged: Bool
  /// The newest rule first.
  var rules: [AddedRule]
  /// The number of rules that have got a name, so that none gets the same.
  var generatedNames: Int
}

extension FaultControl {
  /// The name of the row with the active profile and the added rules.
  static let row = "faults"
  /// The beginning of the names of the rows with profiles that were uploaded.
  static let profileRows = "profile/"

  private static var monotonicTimeIn1970: Int64 { MachineTime.nanoseconds - MachineTime.nanosecondsSince1970 }

  /// Returns the monotonic time of a stored one, which may be damaged.
  private static func monotonicTime(_ stored: Int64) -> MonotonicTime {
    // A hundred years around 1970, so that no sum overflows.
    min(max(stored, -(1 << 62)), 1 << 62).addingClamped(monotonicTimeIn1970)
  }

  /// Returns the row of the store with this name; nil if there is nothing to store.
  func storedRow(_ name: String) -> String? {
    if name == Self.row { return storedFaults.rowText }
    let name = String(name.dropFirst(Self.profileRows.count))
    guard let source = library.load().source(named: name), source.origin == .uploaded else { return nil }
    return source.text
  }

  private var storedFaults: StoredFaults {
    let selection = selection
    let profile = selection.selectedProfile
    func wallTime(_ time: MonotonicTime) -> Int64 { time - Self.monotonicTimeIn1970 }
    return StoredFaults(
      start: initialDescription, profile: profile.source,
      parameters: profile.profile.changedParameters, seed: selection.seed,
      activatedAt: wallTime(selection.activatedAt), endsAt: selection.endsAt.map(wallTime),
      isPaused: selection.isPaused, isChanged: selection.isChanged,
      // Runs end with the server, and their rules with them.
      rules: selection.added.filter { $0.binding.run == nil }.map { added in
        var writer = JSONWriter()
        added.rule.write(to: &writer)
        return StoredFaults.AddedRule(
          text: String(decoding: writer.bytes, as: UTF8.self), addedAt: wallTime(added.addedAt),
          endsAt: added.endsAt.map(wallTime), scope: added.binding.scope, profile: added.profile)
      }, generatedNames: generatedNameCount)
  }

  /// Continues with the profiles, the selection and the counts of rows.
  ///
  /// - Parameter isTakeover: Whether a profile that was not set since the start continues. Otherwise it begins anew.
  func restore(_ rows: [String: String], isTakeover: Bool) {
    for (name, text) in rows.sorted(by: { $0.key < $1.key }) where name.hasPrefix(Self.profileRows) {
      do throws(ProfileFailure) {
        _ = try store(name: String(name.dropFirst(Self.profileRows.count)), text: text)
      } catch {
        reportUnusable("an uploaded profile")
      }
    }
    if let text = rows[Self.row] {
      if let stored = StoredFaults(row: text) {
        restore(stored, isTakeover)
      } else {
        reportUnusable("the profile and rules")
      }
    }
    counters.restore(rows)
  }

  private func restore(_ stored: StoredFaults, _ isTakeover: Bool) {
    let rules = stored.rules.prefix(Self.ruleLimit).compactMap { rule -> AddedRule? in
      do {
        return AddedRule(
          rule: try AddedRuleDefinition.parse(rule.text).rule, addedAt: Self.monotonicTime(rule.addedAt),
          endsAt: rule.endsAt.map(Self.monotonicTime), binding: try RuleBinding(scope: rule.scope),
          profile: rule.profile)
      } catch {
        reportUnusable("a rule")
        return nil
      }
    }
    let profile = continuedProfile(of: stored, isTakeover)
    restore(rules, generatedNames: stored.generatedNames) { selection in
      guard let profile else { return }
      selection.selectedProfile = profile
      selection.seed = stored.seed
      selection.activatedAt = Self.monotonicTime(stored.activatedAt)
      selection.endsAt = stored.endsAt.map(Self.monotonicTime)
      (selection.isPaused, selection.isChanged) = (stored.isPaused, stored.isChanged)
    }
  }

  /// Returns the profile of the former server; nil if that of the start is used.
  private func continuedProfile(of stored: StoredFaults, _ isTakeover: Bool) -> SelectedProfile? {
    guard stored.isChanged || isTakeover else { return nil }
    guard stored.start == initialDescription else {
      logger.notice(
        "the former server was not started with \(initialDescription), as this one is: of its faults only added rules go on"
      )
      return nil
    }
    do throws(ProfileFailure) {
      let loaded = try library.load().profile(of: stored.profile, parameters: stored.parameters)
      return SelectedProfile(source: stored.profile, profile: loaded.profile)
    } catch {
      reportUnusable("the profile")
      return nil
    }
  }

  /// Does not say what a row contains, which may be anything.
  private func reportUnusable(_ part: String) {
    logger.warning(
      "\(part) of the former server, in the store, cannot be used by this one: it is damaged, or of another version")
  }
}

/// A value that is a row of a store, as JSON.
extension Encodable {
  var rowText: String? { (try? JSONEncoder().encode(self)).map { String(decoding: $0, as: UTF8.self) } }
}

extension Decodable {
  /// Decodes a row of a store; nil if it is damaged.
  init?(row text: String) {
    guard let value = try? JSONDecoder().decode(Self.self, from: Data(text.utf8)) else { return nil }
    self = value
  }
}
