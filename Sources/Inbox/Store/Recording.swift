internal import APNSMockRules

/// The pushes that an inbox keeps.
///
/// The others are counted, and count as evicted at once: a wait or an expectation that may depend on them is
/// inconclusive.
package enum Recording: Sendable, Equatable {
  /// All pushes, within the limits of the inbox.
  case all
  /// One of this many pushes, with all of its attempts. The push key decides, so each server keeps the same pushes.
  case sample(of: Int)
  /// No pushes.
  case counters

  private static let samplePrefix = "sample=1/"

  /// Parses `all`, `counters` or `sample=1/N` with N from 1.
  package init?(_ text: String) {
    switch text {
    case "all": self = .all
    case "counters": self = .counters
    default:
      guard text.hasPrefix(Self.samplePrefix), let size = Int(text.dropFirst(Self.samplePrefix.count)), size > 0 else {
        return nil
      }
      self = .sample(of: size)
    }
  }

  /// The text that `init` parses.
  package var text: String {
    switch self {
    case .all: "all"
    case .sample(let size): "\(Self.samplePrefix)\(size)"
    case .counters: "counters"
    }
  }

  /// Returns whether a push is kept.
  func keeps(_ push: PushKey) -> Bool {
    switch self {
    case .all: true
    case .sample(let size): push.number.isMultiple(of: UInt64(size))
    case .counters: false
    }
  }
}
