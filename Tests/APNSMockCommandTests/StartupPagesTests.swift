import Testing

@testable import APNSMockCommand

/// Selection of the mappings whose pages are returned to the system, from Linux's list of mappings.
@Suite struct StartupPagesTests {
  private func mapping(_ first: String, anonymous: String) -> String {
    """
    \(first)
    Size:                 12 kB
    Rss:                  12 kB
    Private_Dirty:         0 kB
    Anonymous:         \(anonymous) kB
    VmFlags: rd mr mw me

    """
  }

  @Test(arguments: [
    ("7f00001000-7f00004000 r-xp 00001000 08:01 42    /usr/lib/libssl.so.3", "0", true),
    ("7f00001000-7f00004000 r--p 00001000 08:01 42    /usr/lib/with a space.so", "0", true),
    // A breakpoint, or an address that the loader wrote.
    ("7f00001000-7f00004000 r-xp 00001000 08:01 42    /usr/lib/libssl.so.3", "4", false),
    ("7f00001000-7f00004000 rw-p 00001000 08:01 42    /usr/lib/libssl.so.3", "0", false),
    ("7f00001000-7f00004000 r--s 00001000 08:01 42    /tmp/shared", "0", false),
    ("7f00001000-7f00004000 ---p 00001000 08:01 42    /usr/lib/libssl.so.3", "0", false),
    ("7f00001000-7f00004000 r--p 00000000 00:00 0 ", "0", false),
    ("7f00001000-7f00004000 r-xp 00000000 00:00 0     [vdso]", "0", false),
    ("7f00004000-7f00001000 r-xp 00001000 08:01 42    /usr/lib/libssl.so.3", "0", false),
  ])
  func onlyUnchangedPagesAreReleased(first: String, anonymous: String, isGiven: Bool) {
    let found = StartupPages.unchanged(in: mapping(first, anonymous: anonymous))
    #expect(found == (isGiven ? [0x7f_0000_1000..<0x7f_0000_4000] : []))
  }

  @Test func adjacentMappingsAreDistinguished() {
    let mappings =
      mapping("1000-2000 r-xp 00001000 08:01 42    /a", anonymous: "4")
      + mapping("2000-3000 rw-p 00001000 08:01 42    /a", anonymous: "0")
      + mapping("3000-4000 r--p 00001000 08:01 42    /a", anonymous: "0")
    #expect(StartupPages.unchanged(in: mappings) == [0x3000..<0x4000])
    #expect(StartupPages.unchanged(in: "") == [])
  }
}
