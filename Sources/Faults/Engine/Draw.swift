import APNSMockFaultModel
internal import APNSMockRules
internal import Foundation
internal import APNSMockTLSEngine
internal import APNSMockNotation

/// A pseudorandom number that depends only on the seed, the rule, the key and the ordinal, so that neither the order
/// of arrival nor the thread can change a decision.
///
/// A draw is made for nearly every push that meets a rule with a probability, so the expensive part, a SHA-256 of
/// seed, profile and rule, is computed once. Two multiplications mix the key and the ordinal into it.
struct Draw {
  private let source: SHA256.Words
  private let bits: UInt64

  /// The hash from which all draws of a rule are computed.
  struct Source: Sendable {
    private let text: String
    fileprivate let words: SHA256.Words

    /// - Parameters:
    ///   - profile: The profile's name; empty for added rules.
    ///   - rule: The rule's name.
    init(seed: UInt64, profile: String, rule: String) { self.init(text: "\(seed)\n\(profile)\n\(rule)") }

    private init(text: String) {
      self.text = text
      words = SHA256.words(of: text)
    }

    /// Returns the source of draws for another purpose than whether the rule fires.
    func of(_ what: String) -> Source { Source(text: "\(text)\n\(what)") }
  }

  /// The key of a draw.
  enum Key: Sendable {
    case push(PushKey)
    case text(String)

    fileprivate var number: UInt64 {
      switch self {
      case .push(let key): key.number
      case .text(let text): SHA256.words(of: text).0
      }
    }
  }

  /// - Parameters:
  ///   - source: The rule's source.
  ///   - key: The subject of the draw, such as a push.
  ///   - ordinal: The index among draws with the same key, such as the attempt number.
  init(_ source: Source, key: Key, ordinal: Int) {
    self.source = source.words
    bits = (source.words.0 ^ key.number).folded(by: source.words.1 ^ UInt64(truncatingIfNeeded: ordinal))
      .mixed(with: source.words)
  }

  /// A uniform number, at least 0 and below 1.
  var number: Double { Self.number(bits) }

  /// A number of the standard normal distribution (Box and Muller, 1958).
  var normal: Double {
    (-2 * log(1 - number)).squareRoot() * cos(2 * .pi * Self.number(bits.mixed(with: source)))
  }

  /// Uses the highest 53 bits, the precision of a Double.
  private static func number(_ bits: UInt64) -> Double { Double(bits >> 11) * 0x1p-53 }
}

extension UInt64 {
  fileprivate func mixed(with source: SHA256.Words) -> UInt64 { (self ^ source.2).folded(by: source.3) }
}

extension SHA256 {
  fileprivate static func words(of text: String) -> Words {
    return text.withBytes { words(of: $0) }
  }
}

extension Action.Delay {
  /// Returns the length of the delay. Calls `draw` only for a distribution.
  func length(_ draw: () -> Draw) -> Duration {
    switch self {
    case .fixed(let duration): return duration
    case .uniform(let min, let max):
      guard max > min else { return min }
      return min + (max - min) * draw().number
    case .lognormal(let median, let sigma, let max):
      let factor = exp(sigma * draw().normal)
      // Compare as numbers first: a large sigma yields factors that overflow a duration.
      return (median / .seconds(1)) * factor < max / .seconds(1) ? median * factor : max
    }
  }
}
