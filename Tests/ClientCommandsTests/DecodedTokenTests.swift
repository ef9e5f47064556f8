import Foundation
import APNSMockTestSupport
import Testing

@testable import APNSMockClientCommands

/// The parts of a provider token made elsewhere that `doctor` reads.
@Suite struct DecodedTokenTests {
  private static func jwt(_ header: String, _ claims: String) -> String {
    var token = TestToken()
    (token.header, token.claims) = (header, claims)
    return token.text
  }

  /// The claims, and the expected `iss` and `iat`.
  @Test(arguments: [
    (#"{"iss":"DEF123GHIJ","iat":1700000000}"#, "DEF123GHIJ", 1_700_000_000 as Double?),
    (#"{"iat":1700000000.5,"iss":"T","sub":"~~~???"}"#, "T", 1_700_000_000.5),
    (#"{"iat":"1700000000"}"#, nil, 1_700_000_000),
    (#"{"iat":"yesterday"}"#, nil, nil), ("{}", nil, nil),
  ])
  func claims(text: String, teamID: String?, issuedAt: Double?) {
    let token = DecodedToken(Self.jwt(#"{"alg":"ES256","kid":"ABC123DEFG"}"#, text))
    #expect(token == DecodedToken(keyID: "ABC123DEFG", teamID: teamID, issuedAt: issuedAt))
  }

  /// What is wrong with a token whatever key signed it.
  @Test(arguments: [
    (#"{"alg":"ES256","kid":1234567890}"#, #"{"iss":"T","iat":1}"#, 64, "kid, the key id, is not a string"),
    (#"{"alg":"ES256","kid":"K"}"#, #"{"iss":5,"iat":1}"#, 64, "iss, the team id, is not a string"),
    (#"{"alg":"ES256","kid":"K"}"#, #"{"iss":"T","iat":1}"#, 63, "the provider token's signature has 63 bytes"),
    (#"{"alg":"ES256","kid":"K"}"#, #"{"iss":"T","iat":1}"#, 132, "the curve P-521 (ES512)"),
    (#"{"alg":"ES512","kid":"K"}"#, #"{"iss":"T","iat":1}"#, 132, nil),
    (#"{"alg":"ES256","kid":"K"}"#, #"{"iss":"T","iat":1}"#, 64, nil),
  ])
  func problem(header: String, claims: String, signatureSize: Int, words: String?) throws {
    var token = TestToken()
    (token.header, token.claims) = (header, claims)
    token.signature = [UInt8](repeating: 7, count: signatureSize)
    let decoded = try #require(DecodedToken(token.text))
    #expect((decoded.problem == nil) == (words == nil))
    if let words { #expect(decoded.problem?.contains(words) == true, "\(decoded.problem ?? "")") }
  }

  @Test(arguments: ["", "a.b", "a.b.c", "..", "e30.e30", "not a token at all", "e30.W10.x"])
  func invalidToken(text: String) {
    #expect(DecodedToken(text) == nil)
    #expect(throws: CommandFailure.self) { try Credential(jwt: text) }
  }

  @Test func trailingLineBreakIsRemoved() throws {
    guard case .token(let jwt, _) = try Credential(jwt: "e30.e30.x\n") else {
      Issue.record("no token")
      return
    }
    #expect(jwt == "e30.e30.x")
  }
}
