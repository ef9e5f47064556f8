/// A GOAWAY frame as it was sent.
public struct GoAway: Sendable, Equatable {
  /// Its error code (RFC 9113 section 7).
  public let errorCode: UInt32
  /// Its debug data as text.
  public let text: String

  /// Reads the GOAWAY frame at the end of `output`, and adds a text to one that tells an error without a word: nghttp2
  /// sends such, and a provider's engineer should see why the connection ended, as APNs lets them (APNS.md section 9.2).
  init(explaining output: inout [UInt8], frameAt start: Int) {
    // Frame header (9 bytes), last stream (4), error code (4), debug data.
    let code = output[(start + 13)..<(start + 17)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    if output.count == start + 17, let explanation = Self.explanations[code] {
      output += Array(explanation.utf8)
      let length = 8 + explanation.utf8.count
      for byte in 0..<3 { output[start + byte] = UInt8(truncatingIfNeeded: length >> (16 - 8 * byte)) }
    }
    errorCode = code
    text = String(decoding: output[(start + 17)...], as: UTF8.self)
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
