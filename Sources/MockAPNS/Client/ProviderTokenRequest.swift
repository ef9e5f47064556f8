import APNSMockNotation
package import APNSMockTLSEngine

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
    let message = Base64URL.text(header.bytes) + "." + Base64URL.text(claims.bytes)
    return message + "." + Base64URL.text(try key.sign(Array(message.utf8)))
  }
}
