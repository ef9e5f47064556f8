internal import COpenSSL

/// Conversion between the encodings of an ECDSA signature: r‖s, as in JWTs, and DER, as in OpenSSL.
enum ECDSASignature {
  /// The size of r and s in a P-256 signature, in bytes.
  private static let numberSize = 32

  /// Converts a raw signature of 64 or 132 bytes to DER; nil for any other size.
  static func der(fromRaw signature: UnsafeRawBufferPointer) -> [UInt8]? {
    guard signature.count == 64 || signature.count == 132 else { return nil }
    let half = signature.count / 2
    let r = number(signature[..<half])
    let s = number(signature[half...])
    let content = UInt8(truncatingIfNeeded: r.count + s.count)
    // The content of a P-256 signature always fits into a one-byte length; the 132-byte form may hold numbers too
    // large for the curve, which no key accepts.
    return content < 0x80 ? [0x30, content] + r + s : []
  }

  /// Converts a DER signature to r and s of 32 bytes each; nil if it is not a P-256 signature.
  static func raw(fromDER der: ArraySlice<UInt8>) -> [UInt8]? {
    let signature = der.withUnsafeBufferPointer { buffer in
      var position = buffer.baseAddress
      return d2i_ECDSA_SIG(nil, &position, buffer.count)
    }
    guard let signature else { return nil }
    defer { ECDSA_SIG_free(signature) }
    var raw = [UInt8](repeating: 0, count: 2 * numberSize)
    let filled = raw.withUnsafeMutableBufferPointer { buffer in
      BN_bn2binpad(ECDSA_SIG_get0_r(signature), buffer.baseAddress, Int32(numberSize)) >= 0
        && BN_bn2binpad(ECDSA_SIG_get0_s(signature), buffer.baseAddress.map { $0 + numberSize }, Int32(numberSize)) >= 0
    }
    return filled ? raw : nil
  }

  /// Encodes an unsigned number as DER INTEGER: no leading zeros except the one that keeps it positive.
  private static func number(_ bytes: Slice<UnsafeRawBufferPointer>) -> [UInt8] {
    var digits = Array(bytes.drop { $0 == 0 })
    if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
    return [0x02, UInt8(truncatingIfNeeded: digits.count)] + digits
  }
}
