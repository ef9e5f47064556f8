import Foundation
import Testing

@testable import APNSMockAdminAPI

/// The gzip format of the web UI's files.
struct GzipTests {
  @Test(arguments: [
    "", "a", "abcabcabcabcabcabc", String(repeating: "x", count: 100_000),
    (0..<20_000).map { "line \($0 * $0 % 977)" }.joined(separator: "\n"),
    String((0..<70_000).map { Character(UnicodeScalar(UInt8(truncatingIfNeeded: $0 &* $0 &* 31 >> 3))) }),
  ])
  func theSystemsProgramReadsIt(text: String) throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).gz")
    defer { try? FileManager.default.removeItem(at: file) }
    try Data(Gzip.compressed(Array(text.utf8))).write(to: file)
    let gunzip = Process()
    gunzip.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    gunzip.arguments = ["gzip", "-dc", file.path]
    let output = Pipe()
    gunzip.standardOutput = output
    try gunzip.run()
    let read = output.fileHandleForReading.readDataToEndOfFile()
    gunzip.waitUntilExit()
    #expect(gunzip.terminationStatus == 0)
    #expect(read == Data(text.utf8))
  }

  @Test func aTextBecomesSmaller() {
    let text = Array(String(repeating: "A push that was accepted. ", count: 1000).utf8)
    #expect(Gzip.compressed(text).count < text.count / 50)
  }

  /// The check value of CRC-32, as in the catalogue of parametrised CRC algorithms.
  @Test func theChecksumIsCRC32() { #expect(Gzip.checksum(Array("123456789".utf8)) == 0xcbf4_3926) }
}
