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
    let digits: StaticString = style == .upperCase ? "0123456789ABCDEF" : "0123456789abcdef"
    var high = next()
    var low = next()
    var position = 0
    for digit in 0..<32 {
      if digit == 8 || digit == 12 || digit == 16 || digit == 20 {
        bytes[position] = UInt8(ascii: "-")
        position += 1
      }
      bytes[position] = digits.utf8Start[Int(high >> 60)]
      position += 1
      high = high << 4 | low >> 60
      low <<= 4
    }
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
