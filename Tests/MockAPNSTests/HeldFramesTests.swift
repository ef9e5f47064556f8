@testable import MockAPNS
import Testing

@Suite struct HeldFramesTests {
  private static func frame(_ type: UInt8, _ length: Int = 0) -> [UInt8] {
    [0, UInt8(length >> 8), UInt8(length & 0xff), type, 0, 0, 0, 0, 1] + [UInt8](repeating: 4, count: length)
  }

  /// HEADERS, DATA, RST_STREAM, SETTINGS, PING, GOAWAY and WINDOW_UPDATE; the payload never looks like a frame type.
  @Test(
    arguments: [
      ([], false), ([frame(1, 20), frame(0, 300)], false), ([frame(3, 4), frame(6, 8), frame(8, 4)], false),
      ([frame(4)], true), ([frame(7, 8)], true), ([frame(1, 700), frame(4, 6)], true),
      ([frame(7, 8), frame(1, 1)], true), ([Array(frame(4).prefix(8))], false),
    ] as [([[UInt8]], Bool)])
  func framesThatAreNotPassed(row: ([[UInt8]], Bool)) {
    #expect(HeldFrames.areOrdered(Array(row.0.joined())) == row.1)
  }
}
