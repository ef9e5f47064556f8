/// Makes the ids that APNs makes: 128 bits in the shape of a UUID, with arbitrary version and variant digits
/// (APNS.md section 7.3, observed). One sequence for each connection, repeatable for the same seed.
struct IdentifierSource {
  /// How the digits are written.
  enum Style {
    /// A generated `apns-id`.
    case upperCase
    /// An `apns-unique-id`.
    case lowerCase
  }

  /// The length of every id in ASCII bytes.
  static let length = 36

  private var state: UInt64

  init(seed: UInt64, connection: UInt64) {
    state = seed &* 0x9E37_79B9_7F4A_7C15 ^ (connection &* 0xD1B5_4A32_D192_ED03)
  }

  /// Writes the next id over `bytes`, which must be 36 bytes long.
  mutating func write(_ style: Style, over bytes: UnsafeMutableBufferPointer<UInt8>) {
    guard bytes.count == Self.length else { return }
    let lettersBegin: UInt64 = style == .upperCase ? 7 : 39
    let (high, low) = (next(), next())
    let second = Self.digits(of: high, lettersBegin)
    let third = Self.digits(of: low >> 32, lettersBegin)
    let hyphen = UInt8(ascii: "-")
    let target = UnsafeMutableRawBufferPointer(bytes)
    // 8-4-4-4-12 digits; where digits are stored over a hyphen's place, the hyphen is stored after them.
    target.storeBytes(of: Self.digits(of: high >> 32, lettersBegin), as: UInt64.self)
    target.storeBytes(of: second, toByteOffset: 9, as: UInt64.self)
    target.storeBytes(of: UInt32(truncatingIfNeeded: second >> 32), toByteOffset: 14, as: UInt32.self)
    target.storeBytes(of: third, toByteOffset: 19, as: UInt64.self)
    target.storeBytes(of: UInt32(truncatingIfNeeded: third >> 32), toByteOffset: 24, as: UInt32.self)
    target.storeBytes(of: Self.digits(of: low, lettersBegin), toByteOffset: 28, as: UInt64.self)
    (target[8], target[13], target[18], target[23]) = (hyphen, hyphen, hyphen, hyphen)
  }

  /// The eight hexadecimal digits of the lower half of `value` as ASCII, the first one in the lowest byte: half bytes are
  /// spread into bytes, and each becomes `0` to `9`, or a letter, which stands `lettersBegin` further on.
  private static func digits(of value: UInt64, _ lettersBegin: UInt64) -> UInt64 {
    var digits = value & 0xFFFF_FFFF
    digits = (digits | digits << 16) & 0x0000_FFFF_0000_FFFF
    digits = (digits | digits << 8) & 0x00FF_00FF_00FF_00FF
    digits = (digits | digits << 4) & 0x0F0F_0F0F_0F0F_0F0F
    let letters = (digits + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    return (digits + 0x3030_3030_3030_3030 + letters * lettersBegin).byteSwapped.littleEndian
  }

  /// SplitMix64 (Steele, Lea, Flood 2014): a public algorithm, fast and good enough for ids that only must differ.
  private mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
