internal import Foundation
internal import TLSEngine

/// A draw: a number that depends on nothing but the seed, the rule and what the draw is of, so that neither the order
/// of arrival nor the thread can change a decision.
struct Draw {
  private let digest: [UInt8]

  /// What all draws of a rule begin with.
  struct Beginning: Sendable {
    fileprivate let text: [UInt8]

    /// - Parameters:
    ///   - profile: empty for ad-hoc rules.
    ///   - rule: the rule's name.
    init(seed: UInt64, profile: String, rule: String) { text = Array("\(seed)\n\(profile)\n\(rule)".utf8) }
  }

  /// - Parameters:
  ///   - beginning: the rule.
  ///   - what: is drawn where that is not whether it fires.
  ///   - key: of what it is, such as a push key.
  ///   - ordinal: which of several with the same key, such as the attempt number.
  init(_ beginning: Beginning, _ what: String, key: String, ordinal: Int) {
    var text = beginning.text
    text.reserveCapacity(text.count + what.utf8.count + key.utf8.count + 24)
    text.append(contentsOf: what.utf8)
    text.append(UInt8(ascii: "\n"))
    text.append(contentsOf: key.utf8)
    text.append(UInt8(ascii: "\n"))
    text.append(contentsOf: "\(ordinal)".utf8)
    digest = text.withUnsafeBytes { SHA256.digest($0) }
  }

  /// At least 0, below 1.
  var number: Double { number(at: 0) }

  /// A number of the standard normal distribution (Box and Muller, 1958).
  var normal: Double { (-2 * log(1 - number(at: 0))).squareRoot() * cos(2 * .pi * number(at: 8)) }

  /// The 53 bits from the byte at `offset` on, as many as a Double can tell apart.
  private func number(at offset: Int) -> Double {
    var bits: UInt64 = 0
    for byte in digest[offset..<offset + 8] { bits = bits << 8 | UInt64(byte) }
    return Double(bits >> 11) * 0x1p-53
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
