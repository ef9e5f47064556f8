/// Conversion of bytes to hexadecimal text.
enum Hexadecimal {
  private static let digits = [UInt8]("0123456789abcdef".utf8)

  /// Returns two lower-case digits per byte.
  static func text(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count * 2)
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }
}
