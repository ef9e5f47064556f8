internal import APNSRules
internal import Foundation
internal import TLSEngine

/// A draw: a number that depends on nothing but the seed, the rule and what the draw is of, so that neither the order
/// of arrival nor the thread can change a decision.
///
/// It is made for nearly every push that meets a rule with a probability, so what costs time, a SHA-256 of seed, profile and
/// rule, is made once. Key and ordinal are mixed into that by two multiplications.
struct Draw {
  private let source: SHA256.Words
  private let bits: UInt64

  /// What all draws of a rule are made of.
  struct Source: Sendable {
    private let text: String
    fileprivate let words: SHA256.Words

    /// - Parameters:
    ///   - profile: empty for ad-hoc rules.
    ///   - rule: the rule's name.
    init(seed: UInt64, profile: String, rule: String) { self.init(text: "\(seed)\n\(profile)\n\(rule)") }

    private init(text: String) {
      self.text = text
      words = SHA256.words(of: text)
    }

    /// The same for draws of something else than whether the rule fires.
    func of(_ what: String) -> Source { Source(text: "\(text)\n\(what)") }
  }

  /// Of what it is.
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
  ///   - source: the rule.
  ///   - key: of what it is, such as a push.
  ///   - ordinal: which of several with the same key, such as the attempt number.
  init(_ source: Source, key: Key, ordinal: Int) {
    self.source = source.words
    bits = (source.words.0 ^ key.number).folded(by: source.words.1 ^ UInt64(truncatingIfNeeded: ordinal))
      .mixed(with: source.words)
  }

  /// At least 0, below 1.
  var number: Double { Self.number(bits) }

  /// A number of the standard normal distribution (Box and Muller, 1958).
  var normal: Double {
    (-2 * log(1 - number)).squareRoot() * cos(2 * .pi * Self.number(bits.mixed(with: source)))
  }

  /// The highest 53 bits, as many as a Double can tell apart.
  private static func number(_ bits: UInt64) -> Double { Double(bits >> 11) * 0x1p-53 }
}

extension UInt64 {
  fileprivate func mixed(with source: SHA256.Words) -> UInt64 { (self ^ source.2).folded(by: source.3) }
}

extension SHA256 {
  fileprivate static func words(of text: String) -> Words {
    var text = text
    return text.withUTF8 { words(of: UnsafeRawBufferPointer($0)) }
  }
}

extension Action.Delay {
  /// How long it is this time. Asks for a draw only where it needs one.
  func length(_ draw: () -> Draw) -> Duration {
    switch self {
    case .fixed(let duration): return duration
    case .uniform(let min, let max):
      guard max > min else { return min }
      return min + (max - min) * draw().number
    case .lognormal(let median, let sigma, let max):
      let factor = exp(sigma * draw().normal)
      // Compared as numbers first: a large sigma makes factors that no duration can take.
      return (median / .seconds(1)) * factor < max / .seconds(1) ? median * factor : max
    }
  }
}
