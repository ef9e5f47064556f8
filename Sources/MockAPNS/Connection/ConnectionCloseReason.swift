package import APNSMockRules
import APNSMockHTTP2Session
import APNSMockNotation

/// The reason for which the server ends a connection. Determines the error code and debug data of the GOAWAY and the
/// log message.
package enum ConnectionCloseReason: Sendable {
  /// The server shuts down.
  case shutdown
  /// Nothing was received for the whole idle timeout.
  case idle
  /// The provider caused more errors than the setting `errors_before_goaway` allows.
  case tooManyErrors
  /// The client certificate is not valid for this environment.
  case wrongEnvironment(PushEnvironment)
  /// More streams were opened than the limit the client had acknowledged.
  case excessStreams(limit: UInt32)
  /// This number of responses waited too long for the client to open its flow-control window for the connection.
  case windowNeverOpened(responses: Int)
  /// The connection did not begin with the HTTP/2 preface but with these bytes.
  case notHTTP2([UInt8])
  /// The connection did not begin with TLS but with these bytes.
  case plainText([UInt8])
  /// Too few of the received bytes belong to requests.
  case flood(bytes: Int, ofRequests: Int)
  /// The client sent this number of TLS KeyUpdate messages with hardly any data between them.
  case keyUpdates(Int)
  /// The HTTP/2 session failed with this message.
  case broken(String)

  /// The error code of the GOAWAY (Protocol.md, section 9.2).
  var errorCode: HTTP2ErrorCode {
    switch self {
    case .shutdown, .idle, .tooManyErrors, .wrongEnvironment: .noError
    case .excessStreams: .refusedStream
    case .notHTTP2, .plainText: .protocolError
    case .windowNeverOpened, .flood, .keyUpdates, .broken: .enhanceYourCalm
    }
  }

  /// Whether the connection closes immediately; otherwise the open streams are finished first.
  var closesAtOnce: Bool {
    switch self {
    case .shutdown, .idle, .tooManyErrors: false
    case .wrongEnvironment, .excessStreams, .windowNeverOpened, .notHTTP2, .plainText, .flood, .keyUpdates, .broken:
      true
    }
  }

  /// The debug data of the GOAWAY: JSON with a reason where APNs sends one, otherwise text (Protocol.md, sections
  /// 1.3 and 9.2).
  var debugData: String {
    switch self {
    case .shutdown, .tooManyErrors: Reason.shutdown.json
    case .idle: Reason.idleTimeout.json
    case .wrongEnvironment: Reason.badCertificateEnvironment.json
    case .excessStreams(let limit): "more active streams than this endpoint allows: \(limit)"
    case .windowNeverOpened(let responses):
      "no WINDOW_UPDATE for the connection while \(responses) responses waited for one"
    case .notHTTP2(let bytes):
      "not an HTTP/2 client preface: \(Self.mistake(bytes)). First bytes received: \(Hexadecimal.text(bytes))"
    case .plainText(let bytes): "TLS expected, but the connection began with plain text \(Self.quotedPrefix(bytes))"
    case .flood(let bytes, let ofRequests): "a flood: of \(bytes) bytes only \(ofRequests) belong to requests"
    case .keyUpdates(let count): "a flood: \(count) TLS key updates"
    case .broken(let message): message
    }
  }

  /// The kind and text of the log message; nil where nothing is wrong.
  var logMessage: (kind: ClientErrorLog.Kind, text: String)? {
    switch self {
    case .shutdown, .idle: nil
    case .tooManyErrors: (.rules, "more rejected pushes than errors_before_goaway allows; GOAWAY")
    case .wrongEnvironment(let here):
      (.rules, "its certificate is for the other environment than \(here.rawValue); GOAWAY BadCertificateEnvironment")
    case .excessStreams(let limit):
      (.rules, "more open streams than the \(limit) it had acknowledged; GOAWAY REFUSED_STREAM")
    case .windowNeverOpened: (.slowness, "\(debugData); GOAWAY ENHANCE_YOUR_CALM")
    case .notHTTP2(let bytes):
      (
        .notHTTP2,
        "\(Self.mistake(bytes)) (\(Self.quotedPrefix(bytes))): APNs speaks HTTP/2 only; "
          + "the client must negotiate h2 or use prior knowledge"
      )
    case .plainText(let bytes):
      (
        .notHTTP2,
        "plain text \(Self.quotedPrefix(bytes)) on the TLS port: use https:// (APNs speaks HTTP/2 over TLS only)"
      )
    case .flood, .keyUpdates, .broken: (.protocolError, "connection ended: \(debugData)")
    }
  }

  /// The number of first bytes to keep for messages: the length of the HTTP/2 preface.
  static let quotedByteCount = 24

  private static func mistake(_ bytes: [UInt8]) -> String {
    bytes.contains(UInt8(ascii: "/")) ? "an HTTP/1.1 request" : "no HTTP/2 client preface"
  }

  /// The beginning of the first line in quotes: enough to identify the protocol, but not a device token further
  /// along the path.
  private static func quotedPrefix(_ bytes: [UInt8]) -> String {
    let line = bytes.prefix { $0 != 13 && $0 != 10 }.prefix(15)
    return "\"" + String(decoding: line.map { (32...126).contains($0) ? $0 : UInt8(ascii: ".") }, as: UTF8.self) + "\""
  }
}
