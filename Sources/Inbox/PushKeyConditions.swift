internal import APNSRules
internal import Notation

/// Conditions on the push key, compared as numbers; as text only if a pattern contains `*`.
struct PushKeyConditions: Sendable {
  private let texts: TextConditions
  private let wanted: Set<PushKey>
  private let unwanted: Set<PushKey>
  private let hasStars: Bool

  init(_ texts: TextConditions) {
    self.texts = texts
    func keys(_ texts: [String?]) -> Set<PushKey> { Set(texts.compactMap { $0.flatMap { PushKey(text: $0) } }) }
    let (wanted, unwanted) = (texts.wanted.map(\.literal), texts.unwanted.map(\.literal))
    hasStars = (wanted + unwanted).contains(nil)
    // A literal that is not a valid key matches no record.
    (self.wanted, self.unwanted) = (keys(wanted), keys(unwanted))
  }

  /// Returns whether the conditions hold for a push key.
  @inline(__always)
  func hold(_ key: PushKey) -> Bool {
    if hasStars { return key.withText { texts.hold($0) } }
    return (texts.holdForNothing || wanted.contains(key)) && !unwanted.contains(key)
  }
}
