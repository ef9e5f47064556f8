internal import APNSMockHTTPMessage
internal import APNSMockNotation

/// A header field that APNs ignores, with a name like that of a field that it knows.
struct NearHeaderField {
  /// A field that a push can have.
  enum Known: String, CaseIterable {
    case topic = "apns-topic"
    case id = "apns-id"
    case collapseID = "apns-collapse-id"
    case expiration = "apns-expiration"
    case priority = "apns-priority"
    case pushType = "apns-push-type"
  }

  /// The name in the request.
  let name: String
  /// The field that was probably meant.
  let meant: Known

  /// Returns the fields of a request that were probably meant as fields that it lacks, in order of arrival.
  ///
  /// - Parameter packed: The packed header list.
  static func all(in packed: UnsafeRawBufferPointer) -> [NearHeaderField] {
    var found: [NearHeaderField] = []
    HeaderList.forEachField(in: packed) { name, _ in
      let bytes = packed[name]
      // Rules out nearly all names without creating a string.
      guard bytes.count <= 40, mayBeNear(bytes) else { return }
      let text = String(decoding: bytes, as: UTF8.self)
      if let meant = meant(by: text) { found.append(NearHeaderField(name: text, meant: meant)) }
    }
    if found.isEmpty { return [] }
    var present: Set<String> = []
    HeaderList.forEachField(in: packed) { name, _ in
      present.insert(String(decoding: packed[name], as: UTF8.self))
    }
    return found.filter { !present.contains($0.meant.rawValue) }
  }

  /// Returns a remark on a missing field, to follow an explanation; empty if no other field was probably meant as it.
  static func note(on missing: Known, _ packed: UnsafeRawBufferPointer) -> String {
    all(in: packed).first { $0.meant == missing }.map { "; \(Explanation.quoted($0.name)) is not that field" } ?? ""
  }

  private static func mayBeNear(_ name: UnsafeRawBufferPointer) -> Bool {
    if name.hasPrefix("ap") {
      return (name.hasPrefix("apn") || name.hasPrefix("aps-")) && !knownNames.contains { name.equals($0) }
    }
    return name.hasPrefix("x-apn") || bareNames.contains { name.equals($0) }
  }

  /// The names of `Known`, to compare bytes with.
  private static let knownNames: [StaticString] = [
    "apns-topic", "apns-id", "apns-collapse-id", "apns-expiration", "apns-priority", "apns-push-type",
  ]

  /// Names without `apns-` that no other protocol uses for a request like a push. `priority` is a field of RFC 9218.
  private static let bareNames: [StaticString] = ["topic", "push-type", "collapse-id", "expiration"]

  /// Returns the field that a name was probably meant as; nil for a known field, and for a name unlike all of them.
  static func meant(by name: String) -> Known? {
    if Known(rawValue: name) != nil || otherFields.contains(name) { return nil }
    var squeezed = name.lowercased().filter { $0 != "-" && $0 != "_" }
    if squeezed.hasPrefix("xapn") { squeezed.removeFirst() }
    for prefix in ["apns", "apn", "aps"] where squeezed.hasPrefix(prefix) {
      squeezed.removeFirst(prefix.count)
      break
    }
    if let exact = bySqueezedName[squeezed] { return exact }
    guard squeezed.count >= 4 else { return nil }
    let letters = Array(squeezed.utf8)[...]
    return bySqueezedName.first { name, _ in
      name.utf8.count >= 5 && Spelling.singleDifference(letters, Array(name.utf8)[...]) != nil
    }?.value
  }

  /// Fields of broadcasts, and one of responses that a client may send back.
  private static let otherFields: Set<String> = ["apns-channel-id", "apns-request-id", "apns-unique-id"]

  /// The fields by their names without `apns` and hyphens, also the names of the same thing elsewhere.
  private static let bySqueezedName: [String: Known] = [
    "topic": .topic, "bundleid": .topic, "id": .id, "messageid": .id, "uuid": .id, "collapseid": .collapseID,
    "collapsekey": .collapseID, "collapseidentifier": .collapseID, "expiration": .expiration, "expiry": .expiration,
    "expires": .expiration, "expirationdate": .expiration, "ttl": .expiration, "priority": .priority,
    "pushtype": .pushType, "type": .pushType,
  ]
}

/// A path that differs in one segment from one that APNs serves.
struct NearPath {
  /// The path that was probably meant, with placeholders in braces.
  let meant: String
  /// What is different.
  let difference: String

  /// The paths that APNs serves, by segments.
  private static let known = [
    ["3", "device", "{device token}"], ["4", "broadcasts", "apps", "{bundle id}"],
    ["1", "apps", "{bundle id}", "channels"], ["1", "apps", "{bundle id}", "all-channels"],
  ]

  /// Compares a path with those that APNs serves; nil if it is unlike all of them.
  init?(_ path: UnsafeRawBufferPointer) {
    guard path.count <= 1024 else { return nil }
    let segments = String(decoding: path, as: UTF8.self).prefix { $0 != "?" && $0 != "#" }
      .split(separator: "/", maxSplits: 8).map(String.init)
    let near = Self.known.compactMap { known in Self.difference(segments, known).map { (known, $0.text, $0.likeness) } }
    guard let best = near.max(by: { $0.2 < $1.2 }) else { return nil }
    meant = "/" + best.0.joined(separator: "/")
    difference = best.1
  }

  /// Returns the only difference between two paths, and how alike they are: the number of letters of the differing segment
  /// that are the same at its beginning.
  private static func difference(_ segments: [String], _ known: [String]) -> (text: String, likeness: Int)? {
    let matches = { (segment: String, wanted: String) in wanted.hasPrefix("{") || segment == wanted }
    let common = zip(segments, known).prefix { matches($0, $1) }.count
    let (rest, knownRest) = (segments[common...], known[common...])
    let agree = { (one: ArraySlice<String>, other: ArraySlice<String>) in
      one.count == other.count && zip(one, other).allSatisfy { matches($0, $1) }
    }
    if segments.count == known.count {
      guard let segment = rest.first, let wanted = knownRest.first else {
        return ("it has slashes, a query or a fragment that do not belong there", 0)
      }
      guard agree(rest.dropFirst(), knownRest.dropFirst()) else { return nil }
      return (
        "\(Explanation.quoted(segment)) must be \(Explanation.quoted(wanted))",
        zip(segment, wanted).prefix { $0 == $1 }.count
      )
    }
    if let wanted = knownRest.first, agree(rest, knownRest.dropFirst()) {
      return (wanted.hasPrefix("{") ? "\(wanted.dropFirst().dropLast()) is missing" : "\"\(wanted)\" is missing", 0)
    }
    if let segment = rest.first, agree(rest.dropFirst(), knownRest) {
      return ("\(Explanation.quoted(segment)) does not belong there", 0)
    }
    return nil
  }
}
