import Foundation
import APNSMockHTTPMessage
import APNSMockTLSEngine

@testable import APNSMockRules

/// Fuzzes provider tokens. The first byte selects the rule mode, and whether the rest is the value of
/// `authorization`, or the header and claims of a JWT, one per line. These are signed with the trusted key, in
/// order to reach the checks after the signature.
struct TokensTarget: FuzzTarget {
  private let key: ES256PrivateKey
  private let ring: TrustedKeySet
  private static let now: Int64 = 1_769_860_800_000
  private static let modes: [RuleMode] = [.apple, .strict, .lenient]

  init() throws {
    let key = try ES256PrivateKey()
    let other = try ES256PrivateKey()
    self.key = key
    ring = TrustedKeySet(
      version: 1,
      keys: [("MOCKKEY001", "MOCKTEAM01", key), ("OTHERKEY02", "OTHERTEAM2", other)].map { keyID, teamID, key in
        TrustedKey(keyID: keyID, teamID: teamID) { algorithm, message, signature in
          key.publicKey.isValid(
            signature: signature, for: message, hash: algorithm == .es256 ? .sha256 : .sha512)
        }
      })
  }

  var seeds: [[UInt8]] {
    let good = signed(
      Array(#"{"alg":"ES256","kid":"MOCKKEY001"}"#.utf8), Array(#"{"iss":"MOCKTEAM01","iat":1769860000}"#.utf8))
    return [[UInt8(ascii: "0")] + good, [UInt8(ascii: "1")] + good]
  }

  func run(_ bytes: UnsafeRawBufferPointer) {
    var input = Input(bytes)
    // Digits, so that seeds can be written by hand.
    let choice = Int(input.byte() % 6)
    let mode = Self.modes[choice % 3]
    let isSigned = choice >= 3
    let authorization = isSigned ? signed(Array(input.line()), Array(input.remaining)) : Array(input.remaining)
    let token = authorization.withUnsafeBytes { ProviderTokenVerification(mode: mode, keys: ring).verify($0) }
    if !isSigned { expect(token.signature != .valid || isWhole(authorization), "a token without a signature is valid") }
    authorization.withUnsafeBytes { text in
      _ = ProviderTokenVerification.unverified(text, mode: mode)
      let known = try? JSONWebToken(UnsafeRawBufferPointer(rebasing: text.dropFirst(text.bearerTokenStart ?? 0)))
      expect(token.signature != .valid || known != nil, "a token is valid that is none")
    }
    validate(authorization, mode)
  }

  /// Validates a push twice, because the token is cached the second time.
  private func validate(_ authorization: [UInt8], _ mode: RuleMode) {
    var headers = HeaderList([
      (":method", "POST"), (":scheme", "https"), (":path", "/3/device/" + String(repeating: "ab12", count: 16)),
      ("apns-topic", "com.example.app"), ("apns-push-type", "alert"),
    ])
    Array("authorization".utf8).withUnsafeBytes { name in
      authorization.withUnsafeBytes { _ = headers.append(name: name, value: $0) }
    }
    let request = HTTPRequest(headers: headers, body: Array(#"{"aps":{"alert":"hi"}}"#.utf8))
    let rulebook = Rulebook(mode: mode)
    var authentication = ConnectionAuthentication()
    let verdicts = [0, 1000].map { later in
      rulebook.validate(
        request, authentication: &authentication, keys: ring, now: Self.now + later)
    }
    expect(verdicts[0].status == verdicts[1].status, "\(verdicts[0].status), and then \(verdicts[1].status)")
  }

  /// Whether it has the three parts of a signed JWT.
  private func isWhole(_ authorization: [UInt8]) -> Bool {
    authorization.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).count == 3
  }

  private func signed(_ header: [UInt8], _ claims: [UInt8]) -> [UInt8] {
    let message = Self.base64URL(header) + "." + Self.base64URL(claims)
    let signature = (try? key.sign(Array(message.utf8))) ?? []
    return Array("bearer \(message).\(Self.base64URL(signature))".utf8)
  }

  private static func base64URL(_ bytes: [UInt8]) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }
}
