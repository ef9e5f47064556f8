import APNSRules
import HTTP2Session
import HTTPMessage
import MockAPNS
import TLSEngine
import Notation

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Checks the result of the push.
struct PushFinding {
  let probeResult: ProbeResult
  let diagnosis: Diagnosis
  /// The result of the clock check.
  let clock: DoctorFinding

  private var known: KnownServer? { diagnosis.known }

  var finding: DoctorFinding {
    guard let credential = diagnosis.credential else {
      return .skipped(
        .push, "no credential: specify --key FILE.p8 --key-id K --team-id T, --token JWT or --cert FILE")
    }
    switch probeResult.outcomes.first ?? nil {
    case .answered(let answer)?: return answered(answer, credential)
    case .reset(let code)?:
      return .failed(
        .push, "the server reset the stream: \(HTTP2ErrorCode.description(of: code))",
        repair: "this is not a response of APNs: check for another service or a proxy")
    case .disconnected?, nil: return unanswered(credential)
    }
  }

  // MARK: - Responses

  /// The JSON body of a rejection or a GOAWAY.
  private struct Rejection: Decodable {
    var reason: String

    init?(_ bytes: [UInt8]) {
      guard let read = try? JSONDecoder().decode(Rejection.self, from: Data(bytes)) else { return nil }
      self = read
    }
  }

  private func answered(_ answer: HTTPResponse, _ credential: Credential) -> DoctorFinding {
    let id = answer.headers["apns-id"].map { ", apns-id \($0)" } ?? ""
    if answer.status == 200 { return .passed(.push, "200 for the topic \(diagnosis.topic)\(id)") }
    guard let text = Rejection(answer.body)?.reason else {
      return .failed(
        .push, "\(answer.status) without a reason",
        repair: "this is not a response of APNs: check for another service or a proxy")
    }
    return .failed(.push, "\(answer.status) \(text)\(id)", repair: repair(for: text, credential))
  }

  private func repair(for text: String, _ credential: Credential) -> String {
    let reason = Reason(text: text)
    switch (reason, credential) {
    case (.invalidProviderToken, .token(_, let token)): return KeyAdvice(token: token, known: known).untrusted
    case (.badEnvironmentKeyInToken, .token(_, let token)), (.badEnvironmentKeyIdInToken, .token(_, let token)):
      return KeyAdvice(token: token, known: known).wrongEnvironment
    case (.expiredProviderToken, _):
      return clock.repair
        ?? "the server's clock differs from the token's iat: check it with apns-mock clock show --admin HOST:PORT; reset it "
        + "with apns-mock clock real"
    case (.missingProviderToken, .certificate):
      return "the server did not receive the certificate: a proxy in between must forward TCP and not terminate TLS"
    case (.badCertificate, _):
      return "this is not a provider certificate: create one with apns-mock certs client --topic \(diagnosis.topic)"
    case (.topicDisallowed, .certificate(_, _, let certificate)):
      return
        "the certificate allows \(certificate.topics.joined(separator: ", ")): push to one of these (--topic), or create "
        + "another one with apns-mock certs client --topic \(diagnosis.topic)"
    case (.topicDisallowed, .token):
      return
        "the key is restricted to other topics, or the topic has the wrong suffix: apns-mock key ls lists the topics"
    default:
      let when = reason.map { "APNs responds with this reason when \($0.when); " } ?? ""
      return when + "for details: apns-mock get APNS-ID"
    }
  }

  // MARK: - No response

  private func unanswered(_ credential: Credential) -> DoctorFinding {
    if let goAway = probeResult.goAway { return dismissed(goAway, credential) }
    if probeResult.tls != nil, !probeResult.isTrusted {
      return .skipped(.push, "no push is sent to an untrusted server")
    }
    switch probeResult.ending {
    case _ where probeResult.negotiatedProtocol != "h2": return .skipped(.push, "no HTTP/2")
    case .failed(let text): return refused(text, credential)
    case .timedOut where probeResult.settings != nil:
      return .failed(
        .push, "no response within \(DurationFormat.text(diagnosis.patience))",
        repair: "check the server's log, or wait longer with --timeout")
    case .closed where probeResult.settings != nil:
      return .failed(.push, "the server closed the connection", repair: "check the server's log")
    default: return .skipped(.push, "the connection ended before the push")
    }
  }

  private func dismissed(_ goAway: ProbeResult.GoAway, _ credential: Credential) -> DoctorFinding {
    let seen = "GOAWAY instead of a response: code \(goAway.errorCode) \(goAway.text)"
    guard Rejection(Array(goAway.text.utf8))?.reason == Reason.badCertificateEnvironment.text,
      case .certificate(_, _, let certificate) = credential
    else { return .failed(.push, seen, repair: "check the server's log") }
    let own = certificate.production ? "production" : "sandbox"
    let other = certificate.production ? "sandbox" : "production"
    return .failed(
      .push, "\(seen): the certificate is for \(own), the server's environment is \(known?.environment ?? other)",
      repair: "start the server with --environment \(own), or create a certificate for both: apns-mock certs client "
        + "--topic \(diagnosis.topic)")
  }

  /// Returns the failure for the server's TLS alert about a client certificate (Protocol.md, section 4.2, observed).
  private func refused(_ text: String, _ credential: Credential) -> DoctorFinding {
    guard case .certificate(let chain, _, let certificate) = credential else {
      return .failed(.push, text, repair: "check the server's log")
    }
    let repair: String
    if text.contains("expired") {
      repair =
        "\(chain) expired at \(TimeArgument.text(certificate.notAfter)): create one with apns-mock certs client --topic "
        + diagnosis.topic
    } else if text.contains("unknown ca") {
      repair =
        "the server does not trust the CA of \(chain): start it with --client-ca FILE, or create a certificate in its "
        + "folder with apns-mock certs client"
    } else {
      repair =
        "the server rejected \(chain): create a new one with apns-mock certs client --topic \(diagnosis.topic)"
    }
    return .failed(.push, "the server rejected the client certificate: \(text)", repair: repair)
  }
}
