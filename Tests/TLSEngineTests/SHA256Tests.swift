import Testing

@testable import TLSEngine

@Suite struct SHA256Tests {
  /// Examples of FIPS 180-4, and the empty message.
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

  @Test func partsCountAsOneMessage() {
    let whole = [UInt8](0...255)
    let parts = whole[..<100].withUnsafeBytes { first in
      whole[100...].withUnsafeBytes { SHA256.digest(first, $0, UnsafeRawBufferPointer(start: nil, count: 0)) }
    }
    #expect(parts == whole.withUnsafeBytes { SHA256.digest($0) })
    #expect(parts.count == SHA256.count)
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
