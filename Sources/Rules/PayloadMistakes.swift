internal import APNSMockHTTPMessage
internal import APNSMockNotation

/// The members of a payload that devices ignore because of their place or spelling, and that were probably meant as members
/// of `aps`, of its `alert` or of its `sound` (Protocol.md, section 6.2).
struct PayloadMistakes {
  /// Descriptions with the correction, in the order of the payload; at most `limit`.
  private(set) var texts: [String] = []

  private static let limit = 3

  /// Searches a payload. One that is not a JSON object has no such members.
  ///
  /// One pass over each object finds the names that are neither known nor surely the app's own, which nearly no payload has.
  ///
  /// - Parameter type: The push type, which decides what may be in `alert`.
  init(_ body: UnsafeRawBufferPointer, type: PushType?) {
    let root = Object(body)
    var (aps, alert, sound): (UnsafeRawBufferPointer?, UnsafeRawBufferPointer?, UnsafeRawBufferPointer?)
    var others: [UnsafeRawBufferPointer] = []
    root.forEachMember { name, value in
      if name.equals("aps") { aps = value } else if Self.mayBeMisplaced(name) { others.append(name) }
    }
    let dictionary = Object(aps)
    dictionary.forEachMember { name, value in
      if name.equals("alert") {
        alert = value
      } else if name.equals("sound") {
        sound = value
      } else if !Self.dictionaryList.contains(where: name.equals) {
        add(name, in: "aps") { Self.meant(by: $0, inDictionary: dictionary) }
      }
    }
    Object(alert).forEachMember { name, _ in
      guard !Self.alertList.contains(where: name.equals) else { return }
      add(name, in: "aps.alert") { Self.meant(by: $0, inAlertOf: dictionary, type) }
    }
    if let critical = Object(sound)["critical"], critical.equals("true") || critical.equals("\"1\"") {
      add("critical in aps.sound is \(String(decoding: critical, as: UTF8.self)): write the number 1")
    }
    for name in others { add(name, in: "the payload") { Self.meant(by: $0, besides: dictionary, in: root, type) } }
    // The members of invalid JSON mean nothing.
    if !texts.isEmpty, JSONText.problem(in: body) != nil { texts = [] }
  }

  private mutating func add(_ name: UnsafeRawBufferPointer, in place: String, _ meant: (String) -> String?) {
    guard texts.count < Self.limit else { return }
    let name = String(decoding: name, as: UTF8.self)
    if let meant = meant(name) { add("\(Explanation.quoted(name)) in \(place) has no effect: write \(meant)") }
  }

  private mutating func add(_ text: String) { if texts.count < Self.limit { texts.append(text) } }

  /// Whether a name beside `aps` can be one that `meant(by:besides:in:_:)` knows: it has a hyphen, an underscore or a capital
  /// letter, or is one of a few others.
  private static func mayBeMisplaced(_ name: UnsafeRawBufferPointer) -> Bool {
    name.contains { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") || (0x41...0x5A).contains($0) }
      || name.equals("alert") || name.equals("apns")
  }

  /// A JSON object whose members are read where they are; without members if the value is another one, or absent.
  private struct Object {
    /// The maximum number of members that are read.
    private static let limit = 100

    private let json: UnsafeRawBufferPointer?

    init(_ json: UnsafeRawBufferPointer?) { self.json = json }

    /// The value of the last member with this name; nil if there is none.
    subscript(name: String) -> UnsafeRawBufferPointer? {
      var found: UnsafeRawBufferPointer?
      forEachMember { if $0.equals(text: name) { found = $1 } }
      return found
    }

    /// Calls `body` with the name and the value of each member.
    func forEachMember(_ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void) {
      guard let json else { return }
      var scanner = JSONScanner(json)
      var count = 0
      guard scanner.enterObject() else { return }
      while count < Self.limit, let (name, value) = scanner.nextMember() {
        body(json.part(name), json.part(value))
        count += 1
      }
    }
  }
}

extension PayloadMistakes {
  /// The members of `aps` that Apple documents, and `url-args` of Safari.
  private static let dictionaryList: [StaticString] = [
    "alert", "badge", "sound", "thread-id", "category", "content-available", "mutable-content", "target-content-id",
    "interruption-level", "relevance-score", "filter-criteria", "stale-date", "content-state", "timestamp", "event",
    "dismissal-date", "attributes-type", "attributes", "content-changed", "input-push-channel", "input-push-token",
    "url-args",
  ]
  /// The members of `alert` that Apple documents or has documented.
  private static let alertList: [StaticString] = [
    "title", "subtitle", "body", "launch-image", "title-loc-key", "title-loc-args", "subtitle-loc-key",
    "subtitle-loc-args", "loc-key", "loc-args", "action", "action-loc-key", "summary-arg", "summary-arg-count",
  ]
  private static let dictionaryNames = Set(dictionaryList.map(\.description))
  private static let alertNames = Set(alertList.map(\.description))
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
    by name: String, inDictionary dictionary: Object
  ) -> String? {
    let letters = letters(name)
    if let known = dictionaryNamesByLetters[letters] ?? neighbor(of: name, among: dictionaryNames) {
      return dictionary[known] == nil ? "aps.\(known)" : nil
    }
    if letters == "critical" || letters == "volume" { return "it into the object aps.sound" }
    guard letters != "action", let known = alertNamesByLetters[letters] else { return nil }
    return Object(dictionary["alert"])[known] == nil ? "aps.alert.\(known)" : nil
  }

  /// Returns what an unknown member of `aps.alert` was probably meant as.
  private static func meant(
    by name: String, inAlertOf dictionary: Object, _ type: PushType?
  ) -> String? {
    // The alert of a Live Activity has a sound.
    if type == .liveactivity, name == "sound" { return nil }
    let letters = letters(name)
    if let known = alertNamesByLetters[letters] ?? neighbor(of: name, among: alertNames) {
      return Object(dictionary["alert"])[known] == nil ? "aps.alert.\(known)" : nil
    }
    if letters == "critical" || letters == "volume" { return "it into the object aps.sound" }
    guard let known = dictionaryNamesByLetters[letters], known != "alert", dictionary[known] == nil else { return nil }
    return "aps.\(known)"
  }

  /// Returns what a member beside `aps` was probably meant as. These members belong to the app, so that only those count that
  /// leave hardly any doubt.
  private static func meant(
    by name: String, besides dictionary: Object, in root: Object, _ type: PushType?
  ) -> String? {
    guard name != "aps" else { return nil }
    let letters = letters(name)
    if letters == "aps" || letters == "apns" {
      return root["aps"] == nil && root[name]?.first == UInt8(ascii: "{") ? "aps" : nil
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
