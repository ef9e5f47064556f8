import APNSMockRules
import APNSMockNotation
import Testing

@testable import APNSMockDevices

/// Registered tokens that a received one is probably a distortion of.
@Suite struct NearTokenTests {
  private static let token = "00ab4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad"
  private static let other = "00ab4707bebcf74f000000000000000000000000000000000000000000000001"

  private static func registry(_ tokens: [String] = [token, other]) throws -> DeviceRegistry {
    let registry = DeviceRegistry()
    for token in tokens { _ = try registry.set(SingleToken(token: token, since: 0)) }
    return registry
  }

  private static func near(_ received: String, in registry: DeviceRegistry) -> String? {
    Array(received.utf8).withUnsafeBytes { registry.nearToken($0) }.map { "\($0.token.prefix(20)) \($0.distortion)" }
  }

  @Test(arguments: [
    (String(token.prefix(32)), "was cut at its end, after 32 of 64 digits"),
    (token.prefix(61).uppercased(), "was cut at its end, after 61 of 64 digits"),
    (String(token.dropFirst(2)), "lacks its first 2 of 64 digits"),
    (String(token.suffix(8)), "lacks its first 56 of 64 digits"),
    (Hexadecimal.text(Array(token.utf8)), "is encoded in hexadecimal twice"),
  ])
  func distortedToken(received: String, distortion: String) throws {
    #expect(Self.near(received, in: try Self.registry()) == "\(Self.token.prefix(20)) \(distortion)")
  }

  /// Registered tokens, the common beginning of two, a part in the middle, and too few digits.
  @Test(arguments: [
    token, token.uppercased(), other, String(token.prefix(16)), String(token.prefix(7)),
    String(token.dropFirst(4).dropLast(4)),
    String(repeating: "f", count: 64), "", "no token",
  ])
  func unlikeToken(received: String) throws { #expect(Self.near(received, in: try Self.registry()) == nil) }

  @Test func changesAreNoticed() throws {
    let registry = DeviceRegistry()
    let cut = String(Self.token.prefix(40))
    #expect(Self.near(cut, in: registry) == nil)
    _ = try registry.set(SingleToken(token: Self.token, since: 0))
    #expect(Self.near(cut, in: registry) != nil)
    _ = try registry.set(SingleToken(token: String(Self.token.prefix(40)) + "0000", since: 0))
    #expect(Self.near(cut, in: registry) == nil, "two tokens begin so")
    registry.reset()
    #expect(Self.near(cut, in: registry) == nil)
  }
}
