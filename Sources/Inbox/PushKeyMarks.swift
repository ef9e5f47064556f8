internal import Faults
internal import NIOConcurrencyHelpers
internal import Notation

/// The beginnings of the push keys of records that stand side by side, as far as somebody has asked for them.
///
/// Making a push key takes a hash over the push, which nobody does while pushes come. It is done when a filter first looks
/// at a record; what is kept of it spares the next one nearly all of that. Records at one place never trade their keys
/// for others: one that is gone is not looked at.
final class PushKeyMarks: Sendable {
  /// The first eight digits of a push key, as a number.
  struct Mark {
    /// Not 0, which says that nothing is known.
    fileprivate let bits: UInt32

    /// Nil where the digits are not told by a mark.
    init?(_ key: String) {
      guard let bits = UInt32(key.prefix(8), radix: 16), bits != 0 else { return nil }
      self.bits = bits
    }

    fileprivate init?(bits: UInt32) {
      guard bits != 0 else { return nil }
      self.bits = bits
    }

    /// Whether the key of this mark begins so.
    @inline(__always)
    func begins(_ beginning: Beginning) -> Bool { bits & beginning.mask == beginning.bits }
  }

  /// How the push keys begin that are as a pattern says, by the digits that a mark tells.
  struct Beginning: Sendable {
    fileprivate let bits: UInt32
    fileprivate let mask: UInt32

    /// Nil where no push key can be as the pattern says.
    init?(_ pattern: TextPattern) {
      if let literal = pattern.literal, literal.utf8.count != PushKey.length { return nil }
      let digits = pattern.beginning.utf8.prefix(8)
      var bits: UInt32 = 0
      for digit in digits {
        guard let value = Character(Unicode.Scalar(digit)).hexDigitValue else { return nil }
        bits = bits << 4 | UInt32(value)
      }
      let missing = UInt32(4 * (8 - digits.count))
      self.bits = bits << missing
      mask = UInt32.max << missing
    }
  }

  /// What is known of the records of a batch.
  struct Known {
    fileprivate var bits: [UInt32] = []
    fileprivate var hasNews = false

    subscript(index: Int) -> Mark? {
      get { index < bits.count ? Mark(bits: bits[index]) : nil }
      set {
        guard index < bits.count, let newValue else { return }
        bits[index] = newValue.bits
        hasNews = true
      }
    }
  }

  // Empty until somebody asks.
  private let marks = NIOLockedValueBox<[UInt32]>([])

  /// What is known of the records from a place on.
  func known(from offset: Int, count: Int) -> Known {
    marks.withLockedValue { marks in
      var known = Known(bits: Array(repeating: 0, count: count))
      for index in 0..<min(count, max(0, marks.count - offset)) { known.bits[index] = marks[offset + index] }
      return known
    }
  }

  /// Keeps what was found out.
  func learn(_ known: Known, from offset: Int) {
    guard known.hasNews else { return }
    marks.withLockedValue { marks in
      let missing = offset + known.bits.count - marks.count
      if missing > 0 { marks.append(contentsOf: repeatElement(0, count: missing)) }
      for (index, bits) in known.bits.enumerated() where bits != 0 { marks[offset + index] = bits }
    }
  }
}
