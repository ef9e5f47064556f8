internal import APNSMockRules
internal import APNSMockFaultModel
internal import APNSMockHTTPMessage
internal import APNSMockNotation

/// What a provider should do after an attempt, as far as the outcome and the response determine it (Protocol.md, section 7.2).
enum RetryAdvice: Sendable {
  /// Nothing: the push was delivered.
  case none
  /// Fix the cause; until then the response stays the same.
  case fix(Remedy)
  /// Delete the device token.
  case unregister
  /// Send the push again later, after 429, 5xx, 408 or 425.
  case later
  /// Send the push again at once, on another connection if this one ends: it was certainly not processed.
  case immediately
  /// Send the push again after a delay: APNs may have accepted it.
  case afterLoss

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

  /// Creates the advice; nil for an attempt that has not ended, or of which a record of an older format does not say enough.
  init?(_ outcome: Record.Outcome, status: Int16?, reason: Reason?) {
    switch outcome {
    case .pending, .unknown: return nil
    case .accepted: self = .none
    case .unprocessed: self = .immediately
    case .responseLost, .unanswered, .incomplete: self = .afterLoss
    case .malformed: self = .fix(.elsewhere)
    case .rejected:
      switch status ?? 0 {
      case 410: self = .unregister
      case 408, 425, 429, 500...: self = .later
      case 400..<500: self = .fix(Remedy(for: reason, status: Int(status ?? 0)))
      default: self = .afterLoss
      }
    }
  }
}

extension RetryAdvice.Remedy {
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

  /// Returns a hash of what must change, with the environment and the listener: another one may accept the same push.
  func value(of record: borrowing Record) -> Int {
    var hasher = Hasher()
    hasher.combine(record.connection.environment)
    hasher.combine(record.connection.listener)
    switch self {
    case .none: break
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
          hasher.combine(bytes: packed[name])
          // Compare sizes coarsely: the length of a provider token varies.
          hasher.combine(value.count / 64)
        }
      }
    }
    return hasher.finalize()
  }
}

extension Record {
  /// What the provider should do after the attempt; nil for one that has not ended.
  var retryAdvice: RetryAdvice? { RetryAdvice(outcome, status: sentResponse.status, reason: sentResponse.reason) }

  /// Whether the push was rejected for good, and the client has the response.
  var isRejectedForGood: Bool {
    guard outcome == .rejected, sentResponse.reason != .expiredProviderToken else { return false }
    switch retryAdvice {
    case .fix, .unregister: return true
    case nil, .some(.none), .later, .immediately, .afterLoss: return false
    }
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
    sentResponse.latencyNanoseconds.map { arrivedAt &+ $0 } ?? wireDetails?.endedAt ?? arrivedAt
  }

  /// The seconds that the response's `Retry-After` header asks the provider to wait; nil without the header.
  var retryAfter: Int64? {
    for injection in wireDetails?.injections ?? [] {
      guard case .respond(let response) = injection.action else { continue }
      if let retryAfter = response.retryAfter { return retryAfter.delay }
      guard let text = response.headers.first(where: { $0.name == "retry-after" })?.value else { return nil }
      return Int64(text) ?? HTTPDate.milliseconds(text).map { max(0, ($0 - receivedAt) / 1000) }
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
