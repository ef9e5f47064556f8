internal import Notation

internal import APNSRules
internal import FaultModel
internal import HTTPMessage

/// The result of an attempt as the client saw it, which determines how the client should retry.
enum AttemptResult: Sendable {
  /// A 200 response.
  case delivered
  /// A response that stays the same until the provider fixes something.
  case permanent(Remedy)
  /// A 410 response: the device token is not valid any more.
  case unregistered
  /// A 429, 5xx, 408 or 425 response: a retry may succeed later.
  case temporary
  /// The push was certainly not processed, so it may be sent again at once.
  case unprocessed
  /// No response was received. APNs may have accepted the push.
  case lost

  /// What must change before a retry after a permanent error makes sense, in addition to the parts that
  /// identify the push.
  enum Remedy: Sendable {
    /// The push itself, which then counts as another push.
    case none
    case apnsID, expiration, priority, method, path
    /// The provider token or the certificate.
    case credential
    /// The credential or the connection, which is bound to the first team and key it used (Protocol.md, section
    /// 3.3).
    case credentialOrConnection
    /// The set of header fields.
    case fields
    /// Something that the request does not show, such as a channel: every retry may succeed.
    case elsewhere
  }

  /// Creates the result of a record's attempt; nil while the record is pending.
  init?(_ record: borrowing Record) {
    guard record.outcome != .pending else { return nil }
    if let status = record.sentResponse.status {
      self.init(status: Int(status), reason: record.sentResponse.reason)
    } else if record.isUnprocessedByHTTP2 {
      self = .unprocessed
    } else {
      self = .lost
    }
  }

  /// The retry advice of Protocol.md, section 7.2: retry 429 and 5xx later, other statuses only after a fix.
  private init(status: Int, reason: Reason?) {
    switch status {
    case 200..<300: self = .delivered
    case 410: self = .unregistered
    // Equivalent to a GOAWAY: retry on another connection.
    case 400 where reason == .idleTimeout: self = .unprocessed
    case 408, 425, 429, 500...: self = .temporary
    case 400..<500: self = .permanent(Remedy(for: reason, status: status))
    default: self = .lost
    }
  }
}

extension AttemptResult.Remedy {
  init(for reason: Reason?, status: Int) {
    switch reason {
    case .badMessageId: self = .apnsID
    case .badExpirationDate: self = .expiration
    case .badPriority: self = .priority
    case .methodNotAllowed: self = .method
    case .badPath, .missingDeviceToken: self = .path
    case .duplicateHeaders: self = .fields
    case .cannotCreateChannelConfig, .channelNotRegistered, .featureNotEnabled: self = .elsewhere
    case .missingProviderToken, .expiredProviderToken, .badEnvironmentKeyInToken, .badEnvironmentKeyIdInToken,
      .topicDisallowed, .topicMismatch:
      self = .credential
    case .invalidProviderToken, .unrelatedKeyIdInToken, .badCertificate, .badCertificateEnvironment:
      self = .credentialOrConnection
    default: self = status == 431 ? .fields : .none
    }
  }

  /// Returns a hash of what must change; constant for `none`.
  func value(of record: borrowing Record) -> Int {
    var hasher = Hasher()
    switch self {
    case .none: return 0
    case .apnsID: record.hash(record.facts.apnsID, into: &hasher)
    case .expiration: record.hash(record.facts.expirationText, into: &hasher)
    case .priority: record.hash(record.facts.priorityText, into: &hasher)
    case .elsewhere: return record.seq
    case .method: record.hash(record.facts.method, into: &hasher)
    case .path: record.hash(record.facts.path, into: &hasher)
    case .credential: hasher.combine(record.credentialIdentity)
    case .credentialOrConnection:
      hasher.combine(record.credentialIdentity)
      hasher.combine(record.connection.identity)
    case .fields:
      record.withHeaders { packed in
        HeaderList.forEachField(in: packed) { name, value in
          hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: packed[name.indices]))
          // Compare sizes coarsely: the length of a provider token varies.
          hasher.combine(value.count / 64)
        }
      }
    }
    return hasher.finalize()
  }
}

extension Record {
  /// Whether HTTP/2 signaled that the push was not processed (RFC 9113, section 8.7).
  fileprivate var isUnprocessedByHTTP2: Bool {
    if wireOutcome?.reset == "REFUSED_STREAM" { return true }
    if let goAway = wireOutcome?.goAway { return goAway.lastStream < stream }
    // A request after a GOAWAY is recorded without a verdict.
    return outcome == .faulted && verdict == nil
  }

  /// A hash that identifies the provider token or the certificate.
  var credentialIdentity: Int? {
    verdict?.token.map { Int(truncatingIfNeeded: $0.identity) } ?? connection.certificate?.fingerprint.hashValue
  }

  /// The response for display, such as `400 BadTopic`.
  var responseText: String {
    let status = sentResponse.status.map { "\($0)" } ?? "nothing"
    return sentReason.map { "\(status) \($0)" } ?? status
  }

  /// The time when the client could know the end of the attempt, in monotonic nanoseconds of machine time.
  var endedAt: MonotonicTime {
    sentResponse.latencyNanoseconds.map { arrivedAt &+ $0 } ?? wireOutcome?.endedAt ?? arrivedAt
  }

  /// The seconds in the response's `Retry-After` header; nil without the header or if it is a date.
  var retryAfter: Int64? {
    for injection in wireOutcome?.injections ?? [] {
      guard case .respond(let response) = injection.action else { continue }
      return response.headers.first { $0.name == "retry-after" }.flatMap { Int64($0.value) }
    }
    return nil
  }

  fileprivate func hash(_ range: ByteRange?, into hasher: inout Hasher) {
    withHeader(range) { bytes in
      hasher.combine(bytes == nil)
      if let bytes { hasher.combine(bytes: bytes) }
    }
  }
}
