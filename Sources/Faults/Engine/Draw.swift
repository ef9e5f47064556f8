internal import APNSRules
internal import Foundation
internal import TLSEngine

/// A draw: a number that depends on nothing but the seed, the rule and what the draw is of, so that neither the order
/// of arrival nor the thread can change a decision.
struct Draw {
  private let digest: SHA256.Words

  /// What all draws of a rule begin with.
  struct Beginning: Sendable {
    fileprivate let text: [UInt8]

    /// - Parameters:
    ///   - profile: empty for ad-hoc rules.
    ///   - rule: the rule's name.
    init(seed: UInt64, profile: String, rule: String) { text = Array("\(seed)\n\(profile)\n\(rule)".utf8) }
  }

  /// Of what it is.
  enum Key: Sendable {
    case push(PushKey)
    case text(String)
  }

  /// - Parameters:
  ///   - beginning: the rule.
  ///   - what: is drawn where that is not whether it fires.
  ///   - key: of what it is, such as a push.
  ///   - ordinal: which of several with the same key, such as the attempt number.
  init(_ beginning: Beginning, _ what: String, key: Key, ordinal: Int) {
    digest = beginning.text.withUnsafeBytes { Self.digest($0, what, key, ordinal) }
  }

  private static func digest(
    _ beginning: UnsafeRawBufferPointer, _ what: String, _ key: Key, _ ordinal: Int
  ) -> SHA256.Words {
    // On the stack: a rule with a probability draws for every push.
    let most = beginning.count + what.utf8.count + key.length + 24
    return withUnsafeTemporaryAllocation(byteCount: most, alignment: 1) { buffer in
      var text = Text(buffer: buffer)
      text.append(beginning)
      text.append(what)
      text.append(UInt8(ascii: "\n"))
      switch key {
      case .push(let key): key.withText { text.append($0) }
      case .text(let key): text.append(key)
      }
      text.append(UInt8(ascii: "\n"))
      if ordinal >= 0, ordinal < 10 {
        text.append(UInt8(ascii: "0") + UInt8(ordinal))
      } else {
        text.append(String(ordinal))
      }
      return SHA256.words(of: UnsafeRawBufferPointer(rebasing: buffer[..<text.count]))
    }
  }

  /// A text that is put together in memory which has room for it.
  private struct Text {
    let buffer: UnsafeMutableRawBufferPointer
    var count = 0

    mutating func append(_ byte: UInt8) {
      buffer[count] = byte
      count += 1
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
      UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: bytes)
      count += bytes.count
    }

    mutating func append(_ text: String) {
      if text.isEmpty { return }
      var text = text
      text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }
  }

  /// At least 0, below 1.
  var number: Double { Self.number(digest.0) }

  /// A number of the standard normal distribution (Box and Muller, 1958).
  var normal: Double { (-2 * log(1 - number)).squareRoot() * cos(2 * .pi * Self.number(digest.1)) }

  /// The highest 53 bits, as many as a Double can tell apart.
  private static func number(_ bits: UInt64) -> Double { Double(bits >> 11) * 0x1p-53 }
}

extension Draw.Key {
  fileprivate var length: Int {
    switch self {
    case .push: PushKey.length
    case .text(let text): text.utf8.count
    }
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
