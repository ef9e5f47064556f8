import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults

/// Client addresses that match an address or block in a profile file.
@Suite struct AddressBlockTests {
  @Test(arguments: [
    ("127.0.0.1", "127.0.0.1", true), ("127.0.0.1", "127.0.0.2", false), ("10.0.0.0/8", "10.255.1.2", true),
    ("10.0.0.0/8", "11.0.0.0", false), ("10.128.0.0/9", "10.127.0.1", false), ("10.128.0.0/9", "10.128.0.1", true),
    ("0.0.0.0/0", "203.0.113.9", true), ("0.0.0.0/0", "::1", false), ("::/0", "::1", true),
    ("::/0", "127.0.0.1", false),
    ("fd00::/8", "fdab::1", true), ("fd00::/8", "fe80::1", false), ("::1", "0:0:0:0:0:0:0:1", true),
    ("2001:db8:0:0::/64", "2001:db8::ffff", true), ("2001:db8::/64", "2001:db8:0:1::", false),
    ("127.0.0.1", "::ffff:127.0.0.1", true), ("::ffff:10.0.0.0/104", "10.9.9.9", true),
    ("10.0.0.0/8", "nonsense", false),
  ])
  func contains(block: String, address: String, isIn: Bool) throws {
    let rule = try ProfileFixture.rule("at: accept, when: {address: '\(block)'}, do: {refuse: }")
    let fixture = EngineFixture { $0.connection.client = address }
    #expect(FaultPlan([rule]).fires(fixture, at: .accept) == isIn)
    let listed = try ProfileFixture.rule("at: accept, when: {address: {in: ['192.0.2.1', '\(block)']}}, do: {refuse: }")
    #expect(FaultPlan([listed]).fires(fixture, at: .accept) == isIn)
    for rule in [rule, listed] { try ProfileWritingTests.expectSame(rule) }
  }

  @Test(arguments: [("10.1.*", "10.1.2.3", true), ("10.1.*", "10.2.1.3", false), ("FD00:*", "fd00::1", true)])
  func pattern(text: String, address: String, matches: Bool) throws {
    let rule = try ProfileFixture.rule("at: accept, when: {address: '\(text)'}, do: {refuse: }")
    #expect(FaultPlan([rule]).fires(EngineFixture { $0.connection.client = address }, at: .accept) == matches)
  }

  @Test(arguments: [
    "", "/", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8", "10.0.0/8", "1.2.3.4/31x", "fd00::1/8",
  ])
  func malformed(text: String) {
    #expect(throws: AddressBlock.Problem.self) { try AddressBlock(text) }
  }
}
