package import APNSMockRules
import Synchronization

/// A provider token in parts, for tests that break one of them.
package struct TestToken {
  /// Raw JSON, so that a test can write what no encoder would.
  package var header: String
  package var claims: String
  package var signature: [UInt8]
  package var isPadded = false
  package var isStandardAlphabet = false

  /// 14 November 2023, 22:13:20 UTC.
  package static let issuedAt: Int64 = 1_700_000_000

  /// Creates a valid token of the mock's own key.
  package init(
    kid: String = "MOCKKEY001", iss: String = "MOCKTEAM01", iat: String = "\(Self.issuedAt)",
    alg: String = "ES256"
  ) {
    header = #"{"alg":"\#(alg)","kid":"\#(kid)"}"#
    claims = #"{"iss":"\#(iss)","iat":\#(iat)}"#
    signature = FakeSignature.raw
  }

  /// The JWT.
  package var text: String {
    message + "." + encode(signature)
  }

  /// The part of the JWT that is signed.
  package var message: String { encode(Array(header.utf8)) + "." + encode(Array(claims.utf8)) }

  /// The value of the `authorization` header.
  package var authorization: String { "bearer " + text }

  package func encode(_ bytes: [UInt8]) -> String {
    let alphabet = isStandardAlphabet ? Self.standardAlphabet : Self.urlAlphabet
    var text: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
      for index in 0...group.count {
        text.append(alphabet[Int(bits >> UInt32(18 - 6 * index) & 63)])
      }
      if isPadded { text += [UInt8](repeating: UInt8(ascii: "="), count: 3 - group.count) }
    }
    return String(decoding: text, as: UTF8.self)
  }

  private static let lettersAndDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
  private static let standardAlphabet = Array((lettersAndDigits + "+/").utf8)
  private static let urlAlphabet = Array((lettersAndDigits + "-_").utf8)
}

/// Signatures without cryptography: the last byte says whether the signature is valid. TLSEngineTests covers real
/// ES256.
package enum FakeSignature {
  package static let raw: [UInt8] = [UInt8](repeating: 0xfb, count: 63) + [1]
  package static let wrong: [UInt8] = [UInt8](repeating: 0xfb, count: 63) + [0]
  package static let der: [UInt8] =
    [0x30, 0x45, 0x02, 0x21, 0] + [UInt8](repeating: 0xfb, count: 32) + [0x02, 0x20] + [UInt8](repeating: 7, count: 31)
    + [1]
  package static let es512: [UInt8] = [UInt8](repeating: 7, count: 131) + [1]

  /// Returns a trusted key that accepts these signatures.
  package static func key(
    _ keyID: String = "MOCKKEY001", team: String = "MOCKTEAM01",
    environment: PushEnvironment? = nil,
    topics: [String]? = nil, related: String? = nil, verifications: Counter? = nil
  ) -> TrustedKey {
    TrustedKey(
      keyID: keyID, teamID: team, environment: environment, topics: topics, relatedKeyID: related
    ) {
      algorithm, message, signature in
      verifications?.increment()
      // The signed message is the first two parts with one dot between them.
      let dots = message.count { $0 == 0x2e }
      return dots == 1 && signature.last == 1 && (algorithm == .es512) == (signature.count == 132)
    }
  }
}

/// A thread-safe counter of calls.
package final class Counter: Sendable {
  private let count = Mutex(0)

  package init() {}

  package var value: Int { count.withLock { $0 } }
  package func increment() { count.withLock { $0 += 1 } }
}
