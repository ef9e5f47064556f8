import TLSEngine
import Notation

/// A provider token, freshly signed (APNS.md section 3).
struct FreshToken: Sendable {
  /// The id in the header's `kid`.
  var keyID: String
  /// The id in the claim `iss`.
  var teamID: String
  /// The claim `iat`, in seconds since 1970.
  var issuedAt: Int64

  /// The JWT, signed with the key in the file `keyPath`.
  ///
  /// - Throws: `CommandFailure` that names the file.
  func signed(withKeyAt keyPath: String) throws -> String {
    let pem: String
    do {
      pem = try Files.text(of: keyPath)
    } catch let error as CommandFailure {
      throw CommandFailure(
        .usage, "\(error); apns-mock certs makes a key, --key FILE or --certs DIR says where one is")
    }
    do {
      return try signed(with: ES256PrivateKey(pem: pem))
    } catch {
      throw CommandFailure(.usage, "\(keyPath): \(error); give it a P-256 key as Apple's .p8 download")
    }
  }

  /// The JWT, signed with `key`.
  func signed(with key: ES256PrivateKey) throws -> String {
    var header = JSONWriter()
    header.object { writer in
      writer.member("alg", "ES256")
      writer.member("kid", keyID)
    }
    var claims = JSONWriter()
    claims.object { writer in
      writer.member("iss", teamID)
      writer.member("iat", issuedAt)
    }
    let message = Self.base64URL(header.bytes) + "." + Self.base64URL(claims.bytes)
    return message + "." + Self.base64URL(try key.sign(Array(message.utf8)))
  }

  /// Base64 in the alphabet for addresses, without padding (RFC 7515 section 2).
  private static func base64URL(_ bytes: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var text: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
      for digit in 0...group.count { text.append(alphabet[bits >> (18 - 6 * digit) & 63]) }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
