import Notation
package import TLSEngine

/// A provider token to be signed (Protocol.md, section 3).
package struct ProviderTokenRequest: Sendable {
  /// The key id, in the header field `kid`.
  package var keyID: String
  /// The team id, in the claim `iss`.
  package var teamID: String
  /// The time of issue in the claim `iat`, in seconds since 1970.
  package var issuedAt: Int64

  /// Creates an unsigned token.
  package init(keyID: String, teamID: String, issuedAt: Int64) {
    self.keyID = keyID
    self.teamID = teamID
    self.issuedAt = issuedAt
  }

  /// Returns the JWT, signed with `key`.
  package func signed(with key: ES256PrivateKey) throws -> String {
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

  /// Returns base64url without padding (RFC 7515 section 2).
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
