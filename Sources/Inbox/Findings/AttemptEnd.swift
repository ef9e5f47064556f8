internal import APNSRules
internal import Faults
internal import HTTPMessage

/// How an attempt ended for the client: what it could conclude from that about the next one.
enum AttemptEnd: Sendable {
  /// 200.
  case delivered
  /// An answer that stays the same until something is mended.
  case permanent(Remedy)
  /// 410.
  case gone
  /// 429 or 5xx: later, maybe.
  case later
  /// It certainly was not looked at, so it may come again at once.
  case unprocessed
  /// There was no answer. APNs may have taken it.
  case lost

  /// What has to be another one before a push that got a permanent answer makes sense again, besides what makes it the
  /// same push.
  enum Remedy: Sendable {
    /// The push itself, which then is another one.
    case none
    case apnsID, expiration, priority, method, path
    /// The provider token or the certificate.
    case credential
    /// That, or the connection, which is bound to the first team and key it saw (APNS.md section 3.3).
    case credentialOrConnection
    /// Which header fields there are.
    case fields
  }

  /// Nil while the record is pending.
  init?(_ record: borrowing Record) {
    guard record.outcome != .pending else { return nil }
    if let status = record.served.status {
      self.init(status: Int(status), reason: record.served.reason)
    } else if record.isLeftOut {
      self = .unprocessed
    } else {
      self = .lost
    }
  }

  /// The retry advice of APNS.md section 7.2: 429 and 5xx later, other statuses only after fixing.
  private init(status: Int, reason: Reason?) {
    switch status {
    case 200: self = .delivered
    case 410: self = .gone
    // A stand-in for GOAWAY: another connection will do.
    case 400 where reason == .idleTimeout: self = .unprocessed
    case 408, 425, 429, 500...: self = .later
    case 400..<500: self = .permanent(Remedy(for: reason, status: status))
    default: self = .lost
    }
  }
}

extension AttemptEnd.Remedy {
  init(for reason: Reason?, status: Int) {
    switch reason {
    case .badMessageId: self = .apnsID
    case .badExpirationDate: self = .expiration
    case .badPriority: self = .priority
    case .methodNotAllowed: self = .method
    case .badPath, .missingDeviceToken: self = .path
    case .duplicateHeaders: self = .fields
    case .missingProviderToken, .expiredProviderToken, .badEnvironmentKeyInToken, .badEnvironmentKeyIdInToken,
      .topicDisallowed:
      self = .credential
    case .invalidProviderToken, .unrelatedKeyIdInToken, .badCertificate, .badCertificateEnvironment:
      self = .credentialOrConnection
    default: self = status == 431 ? .fields : .none
    }
  }

  /// A hash over what would have to be another one; always the same where it is the push itself.
  func value(of record: borrowing Record) -> Int {
    var hasher = Hasher()
    switch self {
    case .none: return 0
    case .apnsID: record.hash(record.facts.apnsID, into: &hasher)
    case .expiration: record.hash(record.facts.expirationText, into: &hasher)
    case .priority: record.hash(record.facts.priorityText, into: &hasher)
    case .method: record.hash(record.facts.method, into: &hasher)
    case .path: record.hash(record.facts.path, into: &hasher)
    case .credential: hasher.combine(record.credentialIdentity)
    case .credentialOrConnection:
      hasher.combine(record.credentialIdentity)
      hasher.combine(ObjectIdentifier(record.connection))
    case .fields:
      record.withHeaders { packed in
        HeaderList.forEachField(in: packed) { name, value in
          hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: packed[name.indices]))
          // A provider token has not always the same length.
          hasher.combine(value.count / 64)
        }
      }
    }
    return hasher.finalize()
  }
}

extension Record {
  /// Whether HTTP/2 said that the push was not processed (RFC 9113 section 8.7).
  fileprivate var isLeftOut: Bool {
    if aftermath?.reset == "REFUSED_STREAM" { return true }
    if let goAway = aftermath?.goAway { return goAway.lastStream < stream }
    // What came after a GOAWAY is recorded without being judged.
    return outcome == .faulted && verdict == nil
  }

  /// Tells the provider token or the certificate.
  var credentialIdentity: Int? { verdict?.token?.identity ?? connection.certificate?.fingerprint.hashValue }

  /// The answer as people say it: `400 BadTopic`.
  var answerText: String {
    let status = served.status.map { "\($0)" } ?? "nothing"
    return servedReason.map { "\(status) \($0)" } ?? status
  }

  /// When the client could know how the attempt ended, in monotonic nanoseconds of machine time.
  var endedAt: Int64 { served.latencyNanoseconds.map { arrivedAt &+ $0 } ?? aftermath?.endedAt ?? arrivedAt }

  /// How many seconds the answer asked to wait; nil if it did not, or with a date.
  var retryAfter: Int64? {
    for injection in aftermath?.injections ?? [] {
      guard case .respond(let answer) = injection.action else { continue }
      return answer.headers.first { $0.name == "retry-after" }.flatMap { Int64($0.value) }
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
