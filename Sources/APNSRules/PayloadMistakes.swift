internal import HTTPMessage
internal import Notation

/// The members of a payload that devices ignore because of their place or spelling, and that were probably meant as members
/// of `aps`, of its `alert` or of its `sound` (Protocol.md, section 6.2).
struct PayloadMistakes {
  /// Descriptions with the correction, in the order of the payload; at most `limit`.
  private(set) var texts: [String] = []

  private static let limit = 3

  /// Searches a payload. One that is not a JSON object has no such members.
  ///
  /// - Parameter type: The push type, which decides what may be in `alert`.
  init(_ body: UnsafeRawBufferPointer, type: PushType?) {
    guard JSONText.problem(in: body) == nil else { return }
    let root = Members(body)
    let dictionary = Members(root["aps"])
    for (name, value) in dictionary.all where !Self.dictionaryNames.contains(name) {
      add(name, in: "aps", Self.meant(by: name, inDictionary: dictionary, value))
    }
    for (name, value) in Members(dictionary["alert"]).all where !Self.alertNames.contains(name) {
      add(name, in: "aps.alert", Self.meant(by: name, inAlertOf: dictionary, type, value))
    }
    if let critical = Members(dictionary["sound"])["critical"], critical.equals("true") || critical.equals("\"1\"") {
      add("critical in aps.sound is \(String(decoding: critical, as: UTF8.self)): write the number 1")
    }
    for (name, value) in root.all {
      add(name, in: "the payload", Self.meant(by: name, besides: dictionary, in: root, type, value))
    }
  }

  private mutating func add(_ name: String, in place: String, _ meant: String?) {
    guard let meant else { return }
    add("\(Explanation.quoted(name)) in \(place) has no effect: write \(meant)")
  }

  private mutating func add(_ text: String) { if texts.count < Self.limit { texts.append(text) } }

  /// The members of an object. The last of several with the same name counts.
  private struct Members {
    private(set) var all: [(name: String, value: UnsafeRawBufferPointer)] = []

    init(_ json: UnsafeRawBufferPointer?) {
      guard let json else { return }
      var scanner = JSONScanner(json)
      guard scanner.enterObject() else { return }
      while let (name, value) = scanner.nextMember(), all.count < 100 {
        all.append((String(decoding: json.part(name), as: UTF8.self), json.part(value)))
      }
    }

    subscript(name: String) -> UnsafeRawBufferPointer? { all.last { $0.name == name }?.value }
  }
}

extension PayloadMistakes {
  /// The members of `aps` that Apple documents, and `url-args` of Safari.
  private static let dictionaryNames: Set<String> = [
    "alert", "badge", "sound", "thread-id", "category", "content-available", "mutable-content", "target-content-id",
    "interruption-level", "relevance-score", "filter-criteria", "stale-date", "content-state", "timestamp", "event",
    "dismissal-date", "attributes-type", "attributes", "content-changed", "input-push-channel", "input-push-token",
    "url-args",
  ]
  /// The members of `alert` that Apple documents or has documented.
  private static let alertNames: Set<String> = [
    "title", "subtitle", "body", "launch-image", "title-loc-key", "title-loc-args", "subtitle-loc-key",
    "subtitle-loc-args", "loc-key", "loc-args", "action", "action-loc-key", "summary-arg", "summary-arg-count",
  ]
  /// Members of `aps` with names that an app's own members beside `aps` hardly have.
  private static let distinctiveNames = dictionaryNames.filter { $0.contains("-") && $0 != "url-args" }
  /// The members beside `aps` that count in other spellings too: an app's own member may be named like the others.
  private static let distinctiveSpellings: Set<String> = [
    "content-available", "mutable-content", "interruption-level", "relevance-score", "target-content-id",
  ]

  /// The documented names by their letters alone, with the names of the same values in `UNNotificationContent`.
  private static let dictionaryNamesByLetters = byLetters(dictionaryNames).merging([
    "threadidentifier": "thread-id", "categoryidentifier": "category", "targetcontentidentifier": "target-content-id",
  ]) { first, _ in first }
  private static let alertNamesByLetters = byLetters(alertNames).merging(["launchimagename": "launch-image"]) {
    first, _ in first
  }

  private static func byLetters(_ names: Set<String>) -> [String: String] {
    Dictionary(names.map { (letters($0), $0) }, uniquingKeysWith: { first, _ in first })
  }

  private static func letters(_ name: String) -> String { name.lowercased().filter { $0 != "-" && $0 != "_" } }

  /// The name that differs by one letter; nil for a name of less than five letters.
  private static func neighbor(of name: String, among names: Set<String>) -> String? {
    let bytes = Array(name.utf8)[...]
    guard (5...30).contains(bytes.count) else { return nil }
    return names.filter { Spelling.singleDifference(bytes, Array($0.utf8)[...]) != nil }.min()
  }

  /// Returns what an unknown member of `aps` was probably meant as.
  private static func meant(
    by name: String, inDictionary dictionary: Members, _ value: UnsafeRawBufferPointer
  ) -> String? {
    let letters = letters(name)
    if let known = dictionaryNamesByLetters[letters] ?? neighbor(of: name, among: dictionaryNames) {
      return dictionary[known] == nil ? "aps.\(known)" : nil
    }
    if letters == "critical" || letters == "volume" { return "it into the object aps.sound" }
    guard letters != "action", let known = alertNamesByLetters[letters] else { return nil }
    return Members(dictionary["alert"])[known] == nil ? "aps.alert.\(known)" : nil
  }

  /// Returns what an unknown member of `aps.alert` was probably meant as.
  private static func meant(
    by name: String, inAlertOf dictionary: Members, _ type: PushType?, _ value: UnsafeRawBufferPointer
  ) -> String? {
    // The alert of a Live Activity has a sound.
    if type == .liveactivity, name == "sound" { return nil }
    let letters = letters(name)
    if let known = alertNamesByLetters[letters] ?? neighbor(of: name, among: alertNames) {
      return Members(dictionary["alert"])[known] == nil ? "aps.alert.\(known)" : nil
    }
    if letters == "critical" || letters == "volume" { return "it into the object aps.sound" }
    guard let known = dictionaryNamesByLetters[letters], known != "alert", dictionary[known] == nil else { return nil }
    return "aps.\(known)"
  }

  /// Returns what a member beside `aps` was probably meant as. These members belong to the app, so that only those count that
  /// leave hardly any doubt.
  private static func meant(
    by name: String, besides dictionary: Members, in root: Members, _ type: PushType?, _ value: UnsafeRawBufferPointer
  ) -> String? {
    guard name != "aps" else { return nil }
    let letters = letters(name)
    if letters == "aps" || letters == "apns" {
      return root["aps"] == nil && value.first == UInt8(ascii: "{") ? "aps" : nil
    }
    // Without aps, `would-not-show` says where it belongs.
    if name == "alert", type == nil || type == .alert, root["aps"] != nil {
      return ["alert", "badge", "sound", "content-available"].allSatisfy { dictionary[$0] == nil } ? "aps.alert" : nil
    }
    guard let known = dictionaryNamesByLetters[letters], dictionary[known] == nil else { return nil }
    guard name == known ? distinctiveNames.contains(known) : distinctiveSpellings.contains(known) else { return nil }
    return "aps.\(known)"
  }
}
