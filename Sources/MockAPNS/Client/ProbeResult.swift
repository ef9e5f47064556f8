internal import APNSMockHTTP2Session
package import APNSMockTLSEngine

/// The observations of a server on one connection, as far as the connection got.
package struct ProbeResult: Sendable {
  /// The ways in which the connection can end.
  package enum Termination: Sendable, Equatable {
    /// All expected responses were received.
    case complete
    /// TLS or HTTP/2 failed, with this message.
    case failed(String)
    /// The server closed the connection.
    case closed
    /// The timeout expired.
    case timedOut
  }

  /// The first bytes that the server sent, at most 64, before decryption.
  package internal(set) var firstBytes: [UInt8] = []
  /// The TLS version, such as `TLSv1.3`; nil before the handshake is complete.
  package internal(set) var tls: String?
  /// The server's certificate in DER; nil until received.
  package internal(set) var certificate: [UInt8]?
  /// The reason for which the certificate chain is not trusted; nil if it is trusted.
  package internal(set) var certificateFault: CertificateFault?
  /// Whether the certificate contains the requested name.
  package internal(set) var certificateMatchesName = false
  /// The protocol negotiated by ALPN.
  package internal(set) var negotiatedProtocol: String?
  /// The first SETTINGS frame.
  package internal(set) var settings: Settings?
  /// The last GOAWAY frame.
  package internal(set) var goAway: GoAway?
  /// The outcome of each push; nil while unknown.
  package internal(set) var outcomes: [PushClient.Outcome?]
  /// How the connection ended.
  package internal(set) var termination = Termination.complete

  /// Whether the server is trusted, so that a provider token may be sent to it.
  package var isTrusted: Bool { tls != nil && certificateFault == nil && certificateMatchesName }

  /// A description of the connection's end for a push without a response.
  var disconnectReason: String {
    goAway.map { frame in
      "GOAWAY \(HTTP2ErrorCode.description(of: frame.errorCode))" + (frame.text.isEmpty ? "" : ": \(frame.text)")
    } ?? "the server closed the connection"
  }

  /// The values of a SETTINGS frame; nil for values it does not contain.
  package struct Settings: Sendable, Equatable {
    package let maxConcurrentStreams: UInt32?
    package let maxHeaderListSize: UInt32?

    /// The MAX_HEADER_LIST_SIZE of APNs (Protocol.md, section 9.1, observed).
    package static let headerListSizeOfAPNs = HTTP2Limits.maxHeaderListSize

    /// Whether the values look like APNs': any MAX_CONCURRENT_STREAMS and APNs' MAX_HEADER_LIST_SIZE.
    package var areAsAPNs: Bool {
      maxConcurrentStreams != nil && maxHeaderListSize == UInt32(Self.headerListSizeOfAPNs)
    }
  }

  /// The content of a GOAWAY frame.
  package struct GoAway: Sendable, Equatable {
    package let errorCode: UInt32
    package let text: String
  }

  /// Creates the result of a connection on which nothing was observed yet.
  package init(pushes: Int) { outcomes = Array(repeating: nil, count: pushes) }
}
