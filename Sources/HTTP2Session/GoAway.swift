private import CNghttp2

/// A GOAWAY frame as it was sent.
public struct GoAway: Sendable, Equatable {
  /// The last stream it names.
  public let lastStream: Int32
  /// Its error code (RFC 9113 section 7).
  public let errorCode: UInt32
  /// Its debug data as text.
  public let text: String

  /// A frame past nghttp2, which is appended to `output`. The debug data is cut at what a frame of the usual size holds.
  init(lastStream: Int32, rawCode: UInt32, debugData: [UInt8], appendingTo output: inout [UInt8]) {
    let debugData = debugData.prefix(Int(HTTP2Limits.maxFrameSize) - 8)
    // Frame header: length (3), type, flags, stream 0 (4). The bit before the last stream is reserved.
    let head = UInt32(8 + debugData.count) << 8 | UInt32(APNS_FRAME_GOAWAY)
    output += Self.bigEndian(head) + [0] + Self.bigEndian(0)
    output += Self.bigEndian(UInt32(bitPattern: lastStream) & 0x7FFF_FFFF) + Self.bigEndian(rawCode) + debugData
    self.lastStream = lastStream
    errorCode = rawCode
    text = String(decoding: debugData, as: UTF8.self)
  }

  /// Reads the GOAWAY frame at the end of `output`, and adds a text to one that tells an error without a word: nghttp2
  /// sends such, and a provider's engineer should see why the connection ended, as APNs lets them (APNS.md section 9.2).
  init(explaining output: inout [UInt8], frameAt start: Int) {
    // Frame header (9 bytes), last stream (4), error code (4), debug data.
    let code = Self.number(output[(start + 13)..<(start + 17)])
    lastStream = Int32(Self.number(output[(start + 9)..<(start + 13)]) & 0x7FFF_FFFF)
    if output.count == start + 17, let explanation = Self.explanations[code] {
      output += Array(explanation.utf8)
      let length = 8 + explanation.utf8.count
      for byte in 0..<3 { output[start + byte] = UInt8(truncatingIfNeeded: length >> (16 - 8 * byte)) }
    }
    errorCode = code
    text = String(decoding: output[(start + 17)...], as: UTF8.self)
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }

  private static func bigEndian(_ number: UInt32) -> [UInt8] {
    stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
  }

  private static let explanations: [UInt32: String] = [
    HTTP2ErrorCode.protocolError.rawValue: "HTTP/2 protocol violated",
    HTTP2ErrorCode.flowControlError.rawValue: "flow control violated",
    HTTP2ErrorCode.streamClosed.rawValue: "frame on a closed stream",
    HTTP2ErrorCode.frameSizeError.rawValue: "frame of a wrong size",
    HTTP2ErrorCode.compressionError.rawValue:
      "cannot decode the header block: corrupt HPACK, or a header field over 65536 bytes",
    HTTP2ErrorCode.enhanceYourCalm.rawValue: "too many frames",
    HTTP2ErrorCode.internalError.rawValue: "internal error",
  ]
}
