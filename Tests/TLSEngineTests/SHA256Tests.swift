import Testing

@testable import APNSMockTLSEngine

@Suite struct SHA256Tests {
  /// The examples of FIPS 180-4, and the empty message.
  @Test(arguments: [
    ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
  ])
  func knownDigests(message: String, digest: String) {
    #expect(SHA256.hexDigest(Array(message.utf8)) == digest)
  }

  @Test func wordsAreInDigestOrder() {
    let words = Array("abc".utf8).withUnsafeBytes { SHA256.words(of: $0) }
    #expect(
      [words.0, words.1, words.2, words.3] == [
        0xba78_16bf_8f01_cfea, 0x4141_40de_5dae_2223, 0xb003_61a3_9617_7a9c, 0xb410_ff61_f200_15ad,
      ])
    let none = SHA256.words(of: UnsafeRawBufferPointer(start: nil, count: 0))
    #expect(none.0 == 0xe3b0_c442_98fc_1c14)
  }

  @Test func manyThreadsAtOnce() async {
    let expected = SHA256.hexDigest([1, 2, 3])
    let same = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<8 { group.addTask { (0..<500).allSatisfy { _ in SHA256.hexDigest([1, 2, 3]) == expected } } }
      return await group.reduce(true) { $0 && $1 }
    }
    #expect(same)
  }
}
