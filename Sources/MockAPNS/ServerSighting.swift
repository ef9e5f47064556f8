internal import HTTP2Session
package import TLSEngine

/// What a client saw of a server on one connection, as far as it came.
package struct ServerSighting: Sendable {
  /// How the connection ended.
  package enum Ending: Sendable, Equatable {
    /// Everything that was wanted is there.
    case complete
    /// TLS or HTTP/2 could not go on; what the one who noticed says of it.
    case failed(String)
    /// The server closed it.
    case closed
    /// Nothing came for too long.
    case timedOut
  }

  /// The first bytes the server sent, at most 64, as they came.
  package internal(set) var firstBytes: [UInt8] = []
  /// The protocol, such as `TLSv1.3`, once the handshake is done.
  package internal(set) var tls: String?
  /// The server's certificate in DER, as soon as it was shown.
  package internal(set) var certificate: [UInt8]?
  /// Why its chain is not trusted.
  package internal(set) var certificateFault: CertificateFault?
  /// Whether it bears the name that was asked for.
  package internal(set) var bearsName = false
  /// What was agreed on by ALPN.
  package internal(set) var negotiatedProtocol: String?
  /// The first SETTINGS.
  package internal(set) var settings: Settings?
  /// The last GOAWAY.
  package internal(set) var goAway: GoAway?
  /// What became of each push; nil as long as nothing is known of it.
  package internal(set) var outcomes: [PushClient.Outcome?]
  /// How it ended.
  package internal(set) var ending = Ending.complete

  /// Whether the server may be shown a provider token.
  package var isTrusted: Bool { tls != nil && certificateFault == nil && bearsName }

  /// What the server said last, for a push without an answer.
  var lastWords: String {
    goAway.map { frame in
      "GOAWAY \(HTTP2ErrorCode.description(of: frame.errorCode))" + (frame.text.isEmpty ? "" : ": \(frame.text)")
    } ?? "the server closed the connection"
  }

  /// What SETTINGS said; nil where they were silent.
  package struct Settings: Sendable, Equatable {
    package let maxConcurrentStreams: UInt32?
    package let maxHeaderListSize: UInt32?

    /// What APNs says of MAX_HEADER_LIST_SIZE (APNS.md section 9.1, observed).
    package static let headerListSizeOfAPNs = HTTP2Limits.maxHeaderListSize

    /// Whether they are such as APNs sends: a number of streams is named, which may be any, and its own size of lists.
    package var areAsAPNs: Bool {
      maxConcurrentStreams != nil && maxHeaderListSize == UInt32(Self.headerListSizeOfAPNs)
    }
  }

  /// What GOAWAY said.
  package struct GoAway: Sendable, Equatable {
    package let errorCode: UInt32
    package let text: String
  }

  init(pushes: Int) { outcomes = Array(repeating: nil, count: pushes) }
}
