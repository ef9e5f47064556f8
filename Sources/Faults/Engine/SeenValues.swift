internal import APNSRules

/// The values that failed a test, with their counts. Bounded in number and in size.
struct SeenValues {
  /// The maximum number of distinct values counted separately.
  static let limit = 32
  /// The maximum length of a value; longer values are truncated.
  private static let length = 80

  /// The number of occurrences of each value; nil is an absent value.
  private(set) var counts: [String?: Int] = [:]
  /// The number of occurrences of all other values.
  private(set) var others = 0

  mutating func add(_ value: SubjectValue?, of subject: Condition.Subject) {
    let text = value.map { Self.shown($0, of: subject) }
    if counts[text] == nil, counts.count >= Self.limit {
      others &+= 1
    } else {
      counts[text, default: 0] &+= 1
    }
  }

  /// The values, the most frequent first.
  var common: [(value: String?, count: Int)] {
    counts.map { (value: $0.key, count: $0.value) }
      .sorted { ($1.count, $0.value ?? "") < ($0.count, $1.value ?? "") }
  }

  private static func shown(_ value: SubjectValue, of subject: Condition.Subject) -> String {
    let text = value.shown
    switch subject {
    case .deviceToken: return DeviceToken.abbreviated(text)
    // Never show a signature, not even in a wrong header: every JWT contains this text.
    case .header(let name) where name == "authorization" || text.contains("eyJ"): return "(not shown)"
    default:
      // Truncate by scalars: one character may consist of any number of them.
      let cut = text.unicodeScalars.prefix(length)
      return cut.endIndex == text.unicodeScalars.endIndex ? text : String(cut)
    }
  }
}
