private import CAPNSMockNghttp2

/// Error codes of RST_STREAM and GOAWAY frames (RFC 9113 section 7).
package enum HTTP2ErrorCode: UInt32, CaseIterable, Sendable {
  case noError = 0
  case protocolError = 1
  case internalError = 2
  case flowControlError = 3
  case settingsTimeout = 4
  case streamClosed = 5
  case frameSizeError = 6
  case refusedStream = 7
  case cancel = 8
  case compressionError = 9
  case connectError = 10
  case enhanceYourCalm = 11
  case inadequateSecurity = 12
  case http11Required = 13

  /// The names of all codes, such as `REFUSED_STREAM`, in numerical order.
  package static let names = allCases.map(\.name)

  /// Creates the code with this name; nil if there is none.
  package init?(name: String) {
    guard let code = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = code
  }

  /// Returns the name of a code, or its decimal number if RFC 9113 does not define it.
  package static func name(of code: UInt32) -> String { HTTP2ErrorCode(rawValue: code)?.name ?? String(code) }

  /// Returns the name and number of a code: `REFUSED_STREAM (0x7)`, or `0x63` if RFC 9113 does not define it.
  package static func description(of code: UInt32) -> String {
    let number = "0x" + String(code, radix: 16)
    return HTTP2ErrorCode(rawValue: code).map { "\($0.name) (\(number))" } ?? number
  }

  /// The name in RFC 9113.
  package var name: String {
    switch self {
    case .noError: "NO_ERROR"
    case .protocolError: "PROTOCOL_ERROR"
    case .internalError: "INTERNAL_ERROR"
    case .flowControlError: "FLOW_CONTROL_ERROR"
    case .settingsTimeout: "SETTINGS_TIMEOUT"
    case .streamClosed: "STREAM_CLOSED"
    case .frameSizeError: "FRAME_SIZE_ERROR"
    case .refusedStream: "REFUSED_STREAM"
    case .cancel: "CANCEL"
    case .compressionError: "COMPRESSION_ERROR"
    case .connectError: "CONNECT_ERROR"
    case .enhanceYourCalm: "ENHANCE_YOUR_CALM"
    case .inadequateSecurity: "INADEQUATE_SECURITY"
    case .http11Required: "HTTP_1_1_REQUIRED"
    }
  }
}

/// An error after which a session cannot continue.
package struct HTTP2Failure: Error, CustomStringConvertible, Sendable, Equatable {
  /// The kinds of failure that callers distinguish.
  package enum Kind: Sendable, Equatable {
    /// The first bytes were not the HTTP/2 connection preface; usually an HTTP/1.1 request.
    case badPreface
    /// Any other fatal error, such as flooding by the peer or lack of memory.
    case fatal
  }
  /// The kind of failure.
  package let kind: Kind
  /// A description for the log.
  package let description: String
}

/// A GOAWAY frame that was sent.
package struct GoAway: Sendable, Equatable {
  /// The last stream identifier.
  package let lastStream: Int32
  /// The error code (RFC 9113 section 7).
  package let errorCode: UInt32
  /// The debug data, decoded as UTF-8.
  package let text: String

  /// Creates a frame without nghttp2's knowledge and appends it to `output`. The debug data is truncated to fit a
  /// frame of the default maximum size.
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

  /// Parses the GOAWAY frame at the end of `output`. If it has an error code and no debug data, as those from
  /// nghttp2, appends an explanation: a client developer should see why the connection ended, as with APNs
  /// (Protocol.md, section 9.2).
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
