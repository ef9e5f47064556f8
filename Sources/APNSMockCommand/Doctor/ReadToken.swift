#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The decoded claims of a provider token. The signature is not verified, which requires the server's key.
struct ReadToken: Sendable, Equatable {
  /// The header's `kid`.
  var keyID: String?
  /// The claim `iss`.
  var teamID: String?
  /// The claim `iat` unchanged; seconds since 1970 if valid.
  var issuedAt: Double?

  /// Creates a token's claims.
  init(keyID: String?, teamID: String?, issuedAt: Double?) {
    self.keyID = keyID
    self.teamID = teamID
    self.issuedAt = issuedAt
  }

  /// Decodes a JWT (RFC 7519); nil if the text is not a JWT.
  init?(_ jwt: String) {
    let parts = jwt.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Self.object(Header.self, parts[0]),
      let claims = Self.object(Claims.self, parts[1])
    else { return nil }
    self.init(keyID: header.kid, teamID: claims.iss, issuedAt: claims.iat?.seconds)
  }

  private struct Header: Decodable {
    var kid: String?
  }

  private struct Claims: Decodable {
    var iss: String?
    var iat: Time?
  }

  /// A number, or a number in a string.
  private struct Time: Decodable {
    var seconds: Double?

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      seconds = (try? value.decode(Double.self)) ?? Double((try? value.decode(String.self)) ?? "")
    }
  }

  private static func object<Value: Decodable>(_ type: Value.Type, _ part: Substring) -> Value? {
    var base64 = part.replacing("-", with: "+").replacing("_", with: "/")
    while base64.utf8.count % 4 != 0 { base64 += "=" }
    return Data(base64Encoded: String(base64)).flatMap { try? JSONDecoder().decode(type, from: $0) }
  }
}
