internal import Notation

/// The body of an error response: compact JSON (Protocol.md, section 7.1, observed).
extension Reason {
  /// The body as sent in responses and in the debug data of GOAWAY frames.
  public var json: String { String(decoding: body(), as: UTF8.self) }

  /// Returns the body of a rejection.
  ///
  /// - Parameter timestamp: the time in a 410, in milliseconds since 1970.
  public func body(timestamp: Int64? = nil) -> [UInt8] {
    timestamp == nil ? Self.bodies[Int(rawValue)] : Self.body(of: text, timestamp: timestamp)
  }

  /// Returns the body for any reason text, including one that APNs does not use.
  public static func body(of reason: String, timestamp: Int64?) -> [UInt8] {
    var writer = JSONWriter(capacity: 64)
    writer.object { writer in
      writer.member("reason", reason)
      if let timestamp { writer.member("timestamp", timestamp) }
    }
    return writer.bytes
  }

  /// The bodies by raw value, so that a rejection need not create one.
  private static let bodies: [[UInt8]] = {
    var bodies = [[UInt8]](repeating: [], count: Int(allCases.map(\.rawValue).max() ?? 0) + 1)
    for reason in allCases { bodies[Int(reason.rawValue)] = body(of: reason.text, timestamp: nil) }
    return bodies
  }()
}
