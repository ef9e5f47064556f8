internal import APNSRules

/// The values that a test met and that were not what it wants. Bounded in number and in size.
struct SeenValues {
  /// At most this many distinct values are kept apart; the others are counted together.
  static let limit = 32
  /// More of a value is cut off.
  private static let length = 80

  /// How often each value was there; nil for no value.
  private(set) var counts: [String?: Int] = [:]
  /// How many values were none of these.
  private(set) var others = 0

  mutating func add(_ value: SubjectValue?, of subject: Condition.Subject) {
    let text = value.map { Self.shown($0, of: subject) }
    if counts[text] == nil, counts.count >= Self.limit {
      others &+= 1
    } else {
      counts[text, default: 0] &+= 1
    }
  }

  /// The most common ones, the most common first.
  var common: [(value: String?, count: Int)] {
    counts.map { (value: $0.key, count: $0.value) }
      .sorted { ($1.count, $0.value ?? "") < ($0.count, $1.value ?? "") }
  }

  private static func shown(_ value: SubjectValue, of subject: Condition.Subject) -> String {
    let text = value.shown
    switch subject {
    case .deviceToken: return DeviceToken.abbreviated(text)
    // A signature must not get out through a wrong header either: every JWT has this in it.
    case .header(let name) where name == "authorization" || text.contains("eyJ"): return "(not shown)"
    default:
      // By scalars: one character may have any number of them.
      let cut = text.unicodeScalars.prefix(length)
      return cut.endIndex == text.unicodeScalars.endIndex ? text : String(cut)
    }
  }
}
