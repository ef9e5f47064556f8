internal import APNSMockHTTPMessage

/// What a request to APNs asks for, by its path (Protocol.md, section 10).
package enum RequestKind: String, CaseIterable, Sendable {
  /// A push to a device token: every path that is not one of the others.
  case push
  /// A broadcast to a channel: `/4/broadcasts/…`.
  case broadcast
  /// Channel management: `/1/apps/…`.
  case channel

  /// The maximum size in bytes of the body of a broadcast (Protocol.md, section 6.1), and of a request that creates a
  /// channel (our inference).
  static let broadcastPayloadLimit = 5120

  /// Creates the kind of a request with this `:path`.
  package init(path: UnsafeRawBufferPointer) {
    if path.hasPrefix("/4/broadcasts/") {
      self = .broadcast
    } else if path.hasPrefix("/1/apps/") {
      self = .channel
    } else {
      self = .push
    }
  }
}

extension PushFacts {
  /// Returns the kind of the request with these facts.
  ///
  /// - Parameter packed: The header fields that the facts were read from.
  package func kind(in packed: UnsafeRawBufferPointer) -> RequestKind {
    guard deviceToken == nil, let path, path.indices.upperBound <= packed.count else { return .push }
    return RequestKind(path: packed[path])
  }
}
