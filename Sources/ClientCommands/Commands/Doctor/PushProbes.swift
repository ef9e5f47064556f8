import APNSMockRules
import APNSMockHTTP2Session
import APNSMockHTTPMessage
import MockAPNS
import APNSMockNotation
import APNSMockTLSEngine

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// MARK: - Clock

extension Diagnosis {
  /// The largest acceptable difference in milliseconds; the future allowance of the rule mode `strict`.
  private static let clockTolerance: Int64 = 300_000
  /// How long APNs accepts a provider token (Protocol.md, section 3.2, documented).
  private static let tokenLife: Int64 = 3_600_000
  /// Distinguishes the units: seconds since 1970 are below this until the year 5138, milliseconds above it since 1973.
  private static let secondsLimit = 1e11

  /// Checks that the server's clock, this machine's clock and the provider token's issue time agree.
  ///
  /// - Parameter now: This machine's time, in milliseconds since 1970.
  func checkClocks(now: Int64) -> Probe.Outcome {
    if case .token(_, let token) = credential, let issuedAt = token.issuedAt,
      let failure = issueTimeFailure(issuedAt, now: now)
    {
      return failure
    }
    guard let known else {
      return .skipped("the server's time is unknown without its admin API (--admin HOST:PORT)")
    }
    let state = known.isFrozen ? " and frozen" : ""
    guard abs(known.clockAhead) > Self.clockTolerance else {
      return .passed("the server's clock is \(Self.text(known.clockAhead)) off\(state)")
    }
    return .failed("the server's clock is \(Self.difference(known))\(state)", repair: Self.clockRepair(known))
  }

  /// Returns the failure for a token's issue time; nil if it is acceptable.
  private func issueTimeFailure(_ issuedAt: Double, now: Int64) -> Probe.Outcome? {
    guard abs(issuedAt) < Self.secondsLimit else {
      return .failed(
        "the provider token's iat is \(Int64(clamping: issuedAt)), a time in milliseconds",
        repair: "the provider must write iat in seconds since 1970")
    }
    // The server's time if known, else this machine's.
    let age = now + (known?.clockAhead ?? 0) - Int64(issuedAt * 1000)
    guard age > Self.tokenLife || age < -Self.clockTolerance else { return nil }
    let clock = known == nil ? "by this machine's clock" : "by the server's clock"
    let seen = "the provider token was issued \(Self.text(age)) \(age > 0 ? "ago" : "in the future") \(clock)"
    if let known, abs(known.clockAhead) > Self.clockTolerance {
      return .failed("\(seen), which is \(Self.difference(known))", repair: Self.clockRepair(known))
    }
    return .failed(
      seen,
      repair: age > 0
        ? "sign a new token every 20 to 60 minutes; APNs accepts a token for one hour"
        : "set the clock of the machine that signed it (NTP)")
  }

  private static func clockRepair(_ known: ServerDetails) -> String {
    "if it was changed: apns-mock clock real --admin \(known.admin); else set this machine's clock or the server's (NTP)"
  }

  /// Returns a text such as `2h ahead`.
  private static func difference(_ known: ServerDetails) -> String {
    "\(text(known.clockAhead)) \(known.clockAhead > 0 ? "ahead" : "behind")"
  }

  /// Returns an absolute duration: to the millisecond below one minute, else to the nearest second.
  private static func text(_ milliseconds: Int64) -> String {
    let distance = abs(milliseconds)
    return DurationFormat.text(.milliseconds(distance < 60_000 ? distance : (distance + 500) / 1000 * 1000))
  }
}

extension Int64 {
  /// The nearest representable integer.
  fileprivate init(clamping value: Double) {
    self = Int64(exactly: value.rounded()) ?? (value < 0 ? .min : .max)
  }
}

// MARK: - Push

extension Diagnosis {
  /// Checks the outcome of the push that was sent when the connection was established.
  func checkPush() -> Probe.Outcome {
    guard let credential else {
      return .skipped("no credential: specify --key FILE.p8 --key-id K --team-id T, --token JWT or --cert FILE")
    }
    switch connection.outcomes.first ?? nil {
    case .response(let response)?: return check(response, to: credential)
    case .reset(let code)?:
      return .failed("the server reset the stream: \(HTTP2ErrorCode.description(of: code))", repair: Self.notAPNs)
    case .disconnected?, nil: return noResponse(to: credential)
    }
  }

  private static let notAPNs = "this is not a response of APNs: check for another service or a proxy"

  /// The JSON body of a rejection or a GOAWAY.
  private struct Rejection: Decodable {
    var reason: String

    init?(_ bytes: [UInt8]) {
      guard let read = try? JSONDecoder().decode(Rejection.self, from: Data(bytes)) else { return nil }
      self = read
    }
  }

  private func check(_ response: HTTPResponse, to credential: Credential) -> Probe.Outcome {
    let id = response.headers["apns-id"].map { ", apns-id \($0)" } ?? ""
    if response.status == 200 { return .passed("200 for the topic \(topic)\(id)") }
    guard let reason = Rejection(response.body)?.reason else {
      return .failed("\(response.status) without a reason", repair: Self.notAPNs)
    }
    return .failed("\(response.status) \(reason)\(id)", repair: repair(for: Reason(text: reason), credential))
  }

  private func repair(for reason: Reason?, _ credential: Credential) -> String {
    switch (reason, credential) {
    case (.invalidProviderToken, .token(_, let token)): KeyAdvice(token: token, known: known).invalid
    case (.badEnvironmentKeyInToken, .token(_, let token)), (.badEnvironmentKeyIdInToken, .token(_, let token)):
      KeyAdvice(token: token, known: known).wrongEnvironment
    case (.expiredProviderToken, _):
      result(of: .clock)?.repair
        ?? "the server's clock differs from the token's iat: check it with apns-mock clock show --admin HOST:PORT; reset it "
        + "with apns-mock clock real"
    case (.missingProviderToken, .certificate):
      "the server did not receive the certificate: a proxy in between must forward TCP and not terminate TLS"
    case (.badCertificate, _):
      "this is not a provider certificate: create one with apns-mock certs client --topic \(topic)"
    case (.topicDisallowed, .certificate(_, _, let certificate)):
      "the certificate allows \(certificate.topics.joined(separator: ", ")): push to one of these (--topic), or create "
        + "another one with apns-mock certs client --topic \(topic)"
    case (.topicDisallowed, .token):
      "the key is restricted to other topics, or the topic has the wrong suffix: apns-mock key ls lists the topics"
    default:
      (reason.map { "APNs responds with this reason when \($0.when); " } ?? "")
        + "for details: apns-mock get APNS-ID"
    }
  }

  private func noResponse(to credential: Credential) -> Probe.Outcome {
    if let goAway = connection.goAway { return goAwayFailure(goAway, credential) }
    if connection.tls != nil, !connection.isTrusted { return .skipped("no push is sent to an untrusted server") }
    switch connection.termination {
    case _ where connection.negotiatedProtocol != "h2": return .skipped("no HTTP/2")
    case .failed(let text): return rejectedHandshake(text, credential)
    case .timedOut where connection.settings != nil:
      return .failed(
        "no response within \(DurationFormat.text(timeout))",
        repair: "check the server's log, or wait longer with --timeout")
    case .closed where connection.settings != nil:
      return .failed("the server closed the connection", repair: "check the server's log")
    default: return .skipped("the connection ended before the push")
    }
  }

  private func goAwayFailure(_ goAway: ProbeResult.GoAway, _ credential: Credential) -> Probe.Outcome {
    let seen = "GOAWAY instead of a response: code \(goAway.errorCode) \(goAway.text)"
    guard Rejection(Array(goAway.text.utf8))?.reason == Reason.badCertificateEnvironment.text,
      case .certificate(_, _, let certificate) = credential
    else { return .failed(seen, repair: "check the server's log") }
    let own = certificate.production ? "production" : "sandbox"
    let other = certificate.production ? "sandbox" : "production"
    return .failed(
      "\(seen): the certificate is for \(own), the server's environment is \(known?.environment ?? other)",
      repair: "start the server with --environment \(own), or create a certificate for both: apns-mock certs client "
        + "--topic \(topic)")
  }

  /// Returns the failure for the server's TLS alert about a client certificate (Protocol.md, section 4.2, observed).
  private func rejectedHandshake(_ text: String, _ credential: Credential) -> Probe.Outcome {
    guard case .certificate(let chain, _, let certificate) = credential else {
      return .failed(text, repair: "check the server's log")
    }
    let repair =
      if text.contains("expired") {
        "\(chain) expired at \(TimeArgument.text(certificate.notAfter)): create one with apns-mock certs client --topic "
          + topic
      } else if text.contains("decrypt error") {
        "the server could not verify the client's signature (alert 51): the private key does not belong to \(chain), "
          + "although its file names the certificate's public key; use the key that was made with it"
      } else if text.contains("unknown ca") {
        "the server does not trust the CA of \(chain): start it with --client-ca FILE, or create a certificate in its "
          + "folder with apns-mock certs client"
      } else {
        "the server rejected \(chain): create a new one with apns-mock certs client --topic \(topic)"
      }
    return .failed("the server rejected the client certificate: \(text)", repair: repair)
  }
}
