import APNSMockHTTPMessage
import APNSMockNotation

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Generates ids as APNs does: 128 bits formatted as a UUID, with arbitrary version and variant digits (Protocol.md,
/// section 7.3, observed). One sequence per connection, repeatable for the same seed.
struct IdentifierSource {
  /// The case of the hexadecimal digits.
  enum Style {
    /// For a generated `apns-id`.
    case upperCase
    /// For an `apns-unique-id`.
    case lowerCase
  }

  /// The length of every id in ASCII bytes.
  static let length = 36
  /// A placeholder that an id is written over.
  static let blank = String(repeating: "0", count: length)

  private var state: UInt64

  init(seed: UInt64, connection: UInt64) {
    state = seed &* 0x9E37_79B9_7F4A_7C15 ^ (connection &* 0xD1B5_4A32_D192_ED03)
  }

  /// Creates the source of the `apns-unique-id` of one request, which is not stored: it is computed again from the
  /// record.
  init(seed: UInt64, connection: UInt64, stream: Int32) {
    self.init(seed: seed, connection: connection)
    state ^= UInt64(UInt32(bitPattern: stream)) &* 0xA24B_AED4_963E_E407
  }

  /// Creates the source of a generated device token.
  init(seed: UInt64, deviceToken number: UInt64) {
    self.init(seed: ~seed, connection: number)
  }

  /// Creates the source of a generated channel id.
  init(seed: UInt64, channel number: UInt64) {
    self.init(seed: seed &+ 0x9FB2_1C65_1E98_DF25, connection: number)
  }

  /// Writes the next id over `bytes`, which must be 36 bytes long.
  mutating func write(_ style: Style, over bytes: UnsafeMutableBufferPointer<UInt8>) {
    guard bytes.count == Self.length else { return }
    let ten = UInt8(ascii: style == .upperCase ? "A" : "a")
    func digits(of half: UInt64) -> UInt64 { UInt64(digitsOf: UInt32(truncatingIfNeeded: half), ten: ten) }
    let (high, low) = (next(), next())
    let (second, third) = (digits(of: high), digits(of: low >> 32))
    let hyphen = UInt8(ascii: "-")
    let target = UnsafeMutableRawBufferPointer(bytes)
    // 8-4-4-4-12 digits. Each hyphen is stored after the digits that overlap its position.
    target.storeBytes(of: digits(of: high >> 32), as: UInt64.self)
    target.storeBytes(of: second, toByteOffset: 9, as: UInt64.self)
    target.storeBytes(of: UInt32(truncatingIfNeeded: second >> 32), toByteOffset: 14, as: UInt32.self)
    target.storeBytes(of: third, toByteOffset: 19, as: UInt64.self)
    target.storeBytes(of: UInt32(truncatingIfNeeded: third >> 32), toByteOffset: 24, as: UInt32.self)
    target.storeBytes(of: digits(of: low), toByteOffset: 28, as: UInt64.self)
    (target[8], target[13], target[18], target[23]) = (hyphen, hyphen, hyphen, hyphen)
  }

  /// Returns the next 64 bits by SplitMix64 (Steele, Lea, Flood 2014), a public algorithm that is fast and good
  /// enough for ids that only must be unique.
  private mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// Returns the next id.
  mutating func next(_ style: Style) -> String {
    String(unsafeUninitializedCapacity: Self.length) { bytes in
      write(style, over: UnsafeMutableBufferPointer(rebasing: bytes[..<Self.length]))
      return Self.length
    }
  }

  /// Returns 16 random bytes in standard base64.
  mutating func base64() -> String {
    let numbers = [next(), next()]
    return numbers.withUnsafeBytes { Data($0) }.base64EncodedString()
  }

  /// Returns random hexadecimal digits in lower case.
  ///
  /// - Parameter count: A multiple of 16.
  mutating func hexadecimal(digits count: Int) -> String {
    (0..<count / 16).map { _ in Hexadecimal.text(next(), digits: 16) }.joined()
  }
}
