#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a provider token says of itself. Its signature is not looked at: only the server's key tells whether it is good.
struct ReadToken: Sendable, Equatable {
  /// `kid` of the header.
  var keyID: String?
  /// `iss`.
  var teamID: String?
  /// `iat` as it stands there: seconds since 1970, if it is right.
  var issuedAt: Double?

  /// A token that says this.
  init(keyID: String?, teamID: String?, issuedAt: Double?) {
    self.keyID = keyID
    self.teamID = teamID
    self.issuedAt = issuedAt
  }

  /// Reads a JWT (RFC 7519); nil if it is none.
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

  /// A number, or one that is written as a text.
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
