import FaultModel
import Faults
import Inbox
import Logging
import Notation

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The active profile and the added rules as a store keeps them. Times are in nanoseconds since 1970, because monotonic ones
/// mean nothing to another process.
struct StoredFaults: Codable {
  struct Source: Codable {
    var name: String
    var text: String
    /// The path of the file that the text is from; nil for another origin.
    var path: String?
    var isBuiltIn: Bool
    var isUploaded: Bool
  }

  struct AddedRule: Codable {
    /// The rule in JSON.
    var text: String
    var addedAt: Int64
    var endsAt: Int64?
  }

  /// The profile and the seed that the server was started with. A server that is started with others uses these.
  var start: String
  var profile: Source
  var parameters: [String: String]
  var seed: UInt64
  var activatedAt: Int64
  var endsAt: Int64?
  var isPaused: Bool
  /// Whether somebody has set the profile, its parameters or the pause since the start.
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
      start: startDescription, profile: StoredFaults.Source(profile.source),
      parameters: profile.profile.changedParameters, seed: selection.seed,
      activatedAt: wallTime(selection.activatedAt), endsAt: selection.endsAt.map(wallTime),
      isPaused: selection.isPaused, isChanged: selection.isChanged,
      rules: selection.added.map { added in
        var writer = JSONWriter()
        added.rule.write(to: &writer)
        return StoredFaults.AddedRule(
          text: String(decoding: writer.bytes, as: UTF8.self), addedAt: wallTime(added.addedAt),
          endsAt: added.endsAt.map(wallTime))
      }, generatedNames: generatedNameCount)
  }

  /// Continues with the profiles, the selection and the counts of rows.
  ///
  /// - Parameter isTakeover: Whether a profile that nobody has set since the start goes on. Otherwise it begins anew.
  func restore(_ rows: [String: String], isTakeover: Bool) {
    for (name, text) in rows.sorted(by: { $0.key < $1.key }) where name.hasPrefix(Self.profileRows) {
      do throws(ProfileFailure) {
        _ = try store(name: String(name.dropFirst(Self.profileRows.count)), text: text)
      } catch {
        reportUnusable(name, error)
      }
    }
    if let text = rows[Self.row] {
      if let stored = StoredFaults(row: text) {
        restore(stored, isTakeover)
      } else {
        reportUnusable(Self.row, "it is damaged")
      }
    }
    counters.restore(rows)
  }

  private func restore(_ stored: StoredFaults, _ isTakeover: Bool) {
    let rules = stored.rules.compactMap { rule -> AddedRule? in
      do throws(ProfileFailure) {
        return AddedRule(
          rule: try AddedRuleDefinition.parse(rule.text).rule, addedAt: rule.addedAt + Self.monotonicTimeIn1970,
          endsAt: rule.endsAt.map { $0 + Self.monotonicTimeIn1970 })
      } catch {
        reportUnusable(Self.row, error)
        return nil
      }
    }
    var profile: SelectedProfile?
    if !stored.isChanged, !isTakeover {
      profile = nil
    } else if stored.start == startDescription {
      do throws(ProfileFailure) {
        let source = ProfileSource(stored.profile)
        let loaded = try library.load().profile(of: source, parameters: stored.parameters)
        profile = SelectedProfile(source: source, profile: loaded.profile)
      } catch {
        reportUnusable(Self.row, error)
      }
    } else {
      logger.notice(
        "the former server was started with \(stored.start), this one with \(startDescription): its profile is not continued"
      )
    }
    restore(rules, generatedNames: stored.generatedNames) { selection in
      guard let profile else { return }
      selection.selectedProfile = profile
      selection.seed = stored.seed
      selection.activatedAt = stored.activatedAt + Self.monotonicTimeIn1970
      selection.endsAt = stored.endsAt.map { $0 + Self.monotonicTimeIn1970 }
      (selection.isPaused, selection.isChanged) = (stored.isPaused, stored.isChanged)
    }
  }

  private func reportUnusable(_ row: String, _ problem: some CustomStringConvertible) {
    logger.warning("the state \(row) in the store cannot be used, and begins anew: \(problem)")
  }
}

extension StoredFaults.Source {
  fileprivate init(_ source: ProfileSource) {
    var path: String?
    if case .file(let file) = source.origin { path = file }
    self.init(
      name: source.name, text: source.text, path: path, isBuiltIn: source.origin == .builtIn,
      isUploaded: source.origin == .uploaded)
  }
}

extension ProfileSource {
  fileprivate init(_ stored: StoredFaults.Source) {
    let origin: Origin =
      stored.path.map { .file($0) } ?? (stored.isBuiltIn ? .builtIn : stored.isUploaded ? .uploaded : .inline)
    self.init(name: stored.name, text: stored.text, origin: origin)
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
