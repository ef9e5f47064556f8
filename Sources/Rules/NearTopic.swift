internal import APNSMockHTTPMessage
internal import APNSMockNotation

/// Recognizes topics that were probably meant as a known one.
package enum NearTopic {
  /// The maximum number of known topics that are compared.
  package static let limit = 2000

  /// Returns the known topic that an unknown one differs from by its case or by one letter, in the bundle id or in the
  /// suffix of a push type; nil if there is none, or if the topic is known.
  ///
  /// Digits count as intended: `com.example.app2` beside `com.example.app1` is another app. So do parts of one or two
  /// letters between dots.
  ///
  /// - Parameter known: Bundle ids, or topics; the first `limit` are compared.
  package static func meant(by topic: String, among known: some Sequence<String>) -> String? {
    let received = Array(topic.utf8)
    guard (1...Rulebook.topicLimit).contains(received.count) else { return nil }
    let suffix = PushType(suffixOf: topic)?.topicSuffix ?? ""
    let bundleID = received.dropLast(suffix.utf8.count)
    var meant: String?
    for name in known.prefix(limit) {
      let knownName = Array(name.utf8)[...]
      if knownName == bundleID || knownName == received[...] { return nil }
      guard meant == nil else { continue }
      if isNear(bundleID, knownName) {
        meant = name + suffix
      } else if suffix.isEmpty, received.count > knownName.count, received.starts(with: knownName) {
        let rest = received[knownName.count...]
        meant = suffixes.first { isNear(rest, Array($0.utf8)[...]) }.map { name + $0 }
      }
    }
    return meant
  }

  /// Returns a remark on a rejected topic, to follow an explanation; empty if it resembles none of the known ones.
  static func note(on topic: ByteRange?, _ packed: UnsafeRawBufferPointer, among known: some Sequence<String>) -> String
  {
    guard let topic else { return "" }
    let text = String(decoding: packed.part(topic.indices.clamped(to: packed.indices)), as: UTF8.self)
    return note(on: text, among: known)
  }

  /// Returns a remark on a rejected topic, to follow an explanation; empty if it resembles none of the known ones.
  static func note(on topic: String, among known: some Sequence<String>) -> String {
    meant(by: topic, among: known).map { "; it was probably meant as \(Explanation.quoted($0))" } ?? ""
  }

  private static let suffixes = PushType.allCases.map(\.topicSuffix).filter { !$0.isEmpty }

  private static func isNear(_ one: ArraySlice<UInt8>, _ other: ArraySlice<UInt8>) -> Bool {
    guard abs(one.count - other.count) <= 1 else { return false }
    if one.count == other.count, zip(one, other).allSatisfy({ lowercased($0) == lowercased($1) }) { return true }
    guard let difference = Spelling.singleDifference(one, other) else { return false }
    let isOfLetters = [difference.one, difference.other].joined().allSatisfy { !(0x30...0x39).contains($0) }
    return isOfLetters
      && (isLongPart(around: difference.one, of: one) || isLongPart(around: difference.other, of: other))
  }

  /// Whether the part between two dots that surrounds a difference has at least three characters.
  private static func isLongPart(around difference: ArraySlice<UInt8>, of text: ArraySlice<UInt8>) -> Bool {
    let dot = UInt8(ascii: ".")
    let before = text[..<difference.startIndex].reversed().prefix { $0 != dot }.count
    let after = text[difference.endIndex...].prefix { $0 != dot }.count
    return before + difference.count + after >= 3
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}
