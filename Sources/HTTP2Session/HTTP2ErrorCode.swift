/// Error codes of RST_STREAM and GOAWAY frames (RFC 9113 section 7).
public enum HTTP2ErrorCode: UInt32, CaseIterable, Sendable {
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
  public static let names = allCases.map(\.name)

  /// Creates the code with this name; nil if there is none.
  public init?(name: String) {
    guard let code = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = code
  }

  /// Returns the name of a code, or its decimal number if RFC 9113 does not define it.
  public static func name(of code: UInt32) -> String { HTTP2ErrorCode(rawValue: code)?.name ?? String(code) }

  /// Returns the name and number of a code: `REFUSED_STREAM (0x7)`, or `0x63` if RFC 9113 does not define it.
  public static func description(of code: UInt32) -> String {
    let number = "0x" + String(code, radix: 16)
    return HTTP2ErrorCode(rawValue: code).map { "\($0.name) (\(number))" } ?? number
  }

  /// The name in RFC 9113.
  public var name: String {
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
