internal import APNSRules
internal import Notation

/// One text of a profile: its own or that of a base profile.
struct ProfileLayer {
  let source: ProfileSource
  let reading: ProfileReading
  let map: ProfileReading.Map<ProfileKey>

  /// The name that the text declares; if absent, the name of its source.
  var name: String {
    guard case .scalar(let scalar)? = map[.name]?.node.content, !scalar.text.isEmpty else { return source.name }
    return scalar.text
  }

  /// Parses the rules; invalid ones are left out.
  func rules() -> [PlacedRule] {
    guard let place = map[.rules], !place.node.isEmpty, let elements = reading.list(place) else { return [] }
    return elements.enumerated().compactMap { reading.rule($1, usualName: "rule-\($0 + 1)") }
  }

  /// Parses everything except the rules into `profile`, overriding the values from its bases.
  func readHeader(into profile: inout Profile) {
    if let place = map[.name] { _ = reading.name(place) }
    profile.summary = map[.summary].flatMap { reading.text($0) } ?? ""
    if let seed = map[.seed].flatMap(seed) { profile.seed = seed }
    if let identity = map[.pushKey].flatMap({ reading.word($0, of: Profile.PushIdentity.self) }) {
      profile.pushIdentity = identity
    }
    if let place = map[.stop], let map = reading.map(place, StopKey.self),
      let after = map[.after].flatMap({ reading.duration($0, isPositive: true) })
    {
      profile.stopAfter = after
    }
    if let place = map[.limits], let map = reading.map(place, LimitsKey.self) {
      if let active = map[.maxActive].flatMap({ reading.whole($0, in: 1...1_000_000) }) {
        profile.limits.maxActive = active
      }
      if let hold = map[.maxHold].flatMap({ reading.duration($0, isPositive: true) }) { profile.limits.maxHold = hold }
    }
    readSettings(into: &profile)
  }

  /// Parses 64 bits, one more than `whole` supports.
  private func seed(_ place: ProfileReading.Located) -> UInt64? {
    guard let scalar = reading.scalar(place, for: .whole) else { return nil }
    if !scalar.isText, let seed = UInt64(scalar.text) { return seed }
    reading.fail(place, scalar, "\(scalar.text.shortened) is not a whole number from 0 to 2⁶⁴−1")
    return nil
  }

  private func readSettings(into profile: inout Profile) {
    guard let place = map[.apns], let entries = reading.entries(place) else { return }
    for entry in entries {
      guard let setting = APNSSetting(rawValue: entry.key) else {
        reading.failUnknown(entry, in: place, among: APNSSetting.allCases.map(\.rawValue))
        continue
      }
      let value = place.member(entry)
      guard let scalar = reading.scalar(value, for: .any) else { continue }
      do throws(BadValue) {
        var settings = APNSSettings()
        try settings.set(setting, to: scalar.text)
        profile.settings[setting] = scalar.text
      } catch {
        reading.fail(value, scalar, "cannot be \"\(scalar.text.shortened)\"", hint: "expected \(error.allowed)")
      }
    }
  }
}
