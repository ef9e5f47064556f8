/// Sixteen adjacent bytes that are compared at once.
struct ByteBlock {
  /// The number of bytes.
  static let size = 16

  private let bytes: SIMD16<UInt8>

  /// Loads the bytes at an address with any alignment.
  @inline(__always)
  init(_ address: UnsafeRawPointer) { bytes = address.loadUnaligned(as: SIMD16<UInt8>.self) }

  /// The positions of a byte.
  @inline(__always)
  func positions(of byte: UInt8) -> Positions { Positions(mask: bytes .== SIMD16(repeating: byte)) }

  /// The positions of a byte that is given sixteen times.
  ///
  /// - Parameter caseBits: Bits that are set in each byte before the comparison: 0x20 to find both cases of a lowercase
  ///   letter.
  @inline(__always)
  func positions(of repeated: SIMD16<UInt8>, setting caseBits: SIMD16<UInt8>) -> Positions {
    Positions(mask: (bytes | caseBits) .== repeated)
  }

  /// The positions of bytes less than `byte`.
  @inline(__always)
  func positions(below byte: UInt8) -> Positions { Positions(mask: bytes .< SIMD16(repeating: byte)) }

  /// Whether all bytes are ASCII.
  @inline(__always)
  var isASCII: Bool {
    let words = unsafeBitCast(bytes, to: SIMD2<UInt64>.self)
    return (words[0] | words[1]) & 0x8080_8080_8080_8080 == 0
  }

  /// A set of positions in a block.
  struct Positions {
    fileprivate let mask: SIMDMask<SIMD16<Int8>>

    @inline(__always)
    static func & (one: Positions, other: Positions) -> Positions { Positions(mask: one.mask .& other.mask) }

    @inline(__always)
    static func | (one: Positions, other: Positions) -> Positions { Positions(mask: one.mask .| other.mask) }

    // The bytes of a mask have all bits set or none.
    @inline(__always)
    private var words: SIMD2<UInt64> { unsafeBitCast(mask, to: SIMD2<UInt64>.self) }

    @inline(__always)
    var isEmpty: Bool { words[0] | words[1] == 0 }

    /// The first position; nil for the empty set.
    @inline(__always)
    var first: Int? {
      let (low, high) = (words[0].littleEndian, words[1].littleEndian)
      if low != 0 { return low.trailingZeroBitCount / 8 }
      return high == 0 ? nil : 8 + high.trailingZeroBitCount / 8
    }

    /// Returns the first position for which `isWanted` returns true.
    @inline(__always)
    func first(where isWanted: (Int) -> Bool) -> Int? {
      for half in 0..<2 {
        var rest = words[half].littleEndian
        while rest != 0 {
          let position = rest.trailingZeroBitCount / 8
          if isWanted(8 * half + position) { return 8 * half + position }
          rest &= ~(0xFF << UInt64(8 * position))
        }
      }
      return nil
    }
  }
}

extension UnsafeRawBufferPointer {
  /// Returns the first position of `byte` at or after `start`.
  package func firstPosition(of byte: UInt8, from start: Int = 0) -> Int? {
    guard let address = baseAddress else { return nil }
    var position = start
    while position + ByteBlock.size <= count {
      if position + 4 * ByteBlock.size <= count {
        // Four blocks, combined into one branch.
        let next = address + position
        let any =
          (ByteBlock(next).positions(of: byte) | ByteBlock(next + ByteBlock.size).positions(of: byte))
          | (ByteBlock(next + 2 * ByteBlock.size).positions(of: byte)
            | ByteBlock(next + 3 * ByteBlock.size).positions(of: byte))
        if any.isEmpty {
          position += 4 * ByteBlock.size
          continue
        }
      }
      if let found = ByteBlock(address + position).positions(of: byte).first { return position + found }
      position += ByteBlock.size
    }
    while position < count {
      if self[position] == byte { return position }
      position += 1
    }
    return nil
  }
}
