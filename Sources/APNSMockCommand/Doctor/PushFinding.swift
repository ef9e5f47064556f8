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

/// What became of the push.
struct PushFinding {
  let sighting: ServerSighting
  let examination: Examination
  /// What was found about the time.
  let clock: DoctorFinding

  private var known: KnownServer? { examination.known }

  var finding: DoctorFinding {
    guard let credential = examination.credential else {
      return .skipped(
        .push, "there is nothing to push by: give --key FILE.p8 --key-id K --team-id T, --token JWT or --cert FILE")
    }
    switch sighting.outcomes.first ?? nil {
    case .answered(let answer)?: return answered(answer, credential)
    case .reset(let code)?:
      return .failed(
        .push, "stream reset by the server: \(HTTP2ErrorCode.description(of: code))",
        repair: "this is not how APNs answers: another service, or a proxy, is in between")
    case .disconnected?, nil: return unanswered(credential)
    }
  }

  // MARK: - Answers

  /// The JSON of an answer or a GOAWAY.
  private struct Rejection: Decodable {
    var reason: String

    init?(_ bytes: [UInt8]) {
      guard let read = try? JSONDecoder().decode(Rejection.self, from: Data(bytes)) else { return nil }
      self = read
    }
  }

  private func answered(_ answer: HTTPResponse, _ credential: Credential) -> DoctorFinding {
    let id = answer.headers["apns-id"].map { ", apns-id \($0)" } ?? ""
    if answer.status == 200 { return .passed(.push, "200 for the topic \(examination.topic)\(id)") }
    guard let text = Rejection(answer.body)?.reason else {
      return .failed(
        .push, "\(answer.status) without a reason",
        repair: "this is not how APNs answers: another service, or a proxy, is in between")
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
        ?? "the server's clock shows another time than the token's iat: apns-mock clock show --admin HOST:PORT tells; one "
        + "that was moved is set back by apns-mock clock real"
    case (.missingProviderToken, .certificate):
      return "the server did not get the certificate: a proxy that ends TLS before it has to pass TCP on as it comes"
    case (.badCertificate, _):
      return "this is no provider certificate: make one with apns-mock certs client --topic \(examination.topic)"
    case (.topicDisallowed, .certificate(_, _, let certificate)):
      return
        "the certificate is for \(certificate.topics.joined(separator: ", ")): push to one of these (--topic), or make "
        + "another one with apns-mock certs client --topic \(examination.topic)"
    case (.topicDisallowed, .token):
      return "the key is for other topics, or the topic's suffix does not fit: apns-mock key ls shows those of each key"
    default:
      let when = reason.map { "APNs says so when \($0.when); " } ?? ""
      return when + "apns-mock get APNS-ID shows how far the push came"
    }
  }

  // MARK: - No answer

  private func unanswered(_ credential: Credential) -> DoctorFinding {
    if let goAway = sighting.goAway { return dismissed(goAway, credential) }
    if sighting.tls != nil, !sighting.isTrusted {
      return .skipped(.push, "nothing is sent to a server that is not trusted")
    }
    switch sighting.ending {
    case _ where sighting.negotiatedProtocol != "h2": return .skipped(.push, "no HTTP/2")
    case .failed(let text): return refused(text, credential)
    case .timedOut where sighting.settings != nil:
      return .failed(
        .push, "no answer within \(WrittenDuration.text(examination.patience))",
        repair: "look into the server's log; --timeout gives it longer")
    case .closed where sighting.settings != nil:
      return .failed(.push, "the server closed the connection", repair: "look into the server's log")
    default: return .skipped(.push, "the connection did not come that far")
    }
  }

  private func dismissed(_ goAway: ServerSighting.GoAway, _ credential: Credential) -> DoctorFinding {
    let seen = "GOAWAY instead of an answer: code \(goAway.errorCode) \(goAway.text)"
    guard Rejection(Array(goAway.text.utf8))?.reason == Reason.badCertificateEnvironment.text,
      case .certificate(_, _, let certificate) = credential
    else { return .failed(.push, seen, repair: "look into the server's log") }
    let own = certificate.production ? "production" : "sandbox"
    let other = certificate.production ? "sandbox" : "production"
    return .failed(
      .push, "\(seen): the certificate is for \(own), the server mimics \(known?.environment ?? other)",
      repair: "start the server with --environment \(own), or make a certificate for both: apns-mock certs client "
        + "--topic \(examination.topic)")
  }

  /// The server's TLS alert about a client certificate (APNS.md section 4.2, observed).
  private func refused(_ text: String, _ credential: Credential) -> DoctorFinding {
    guard case .certificate(let chain, _, let certificate) = credential else {
      return .failed(.push, text, repair: "look into the server's log")
    }
    let repair: String
    if text.contains("expired") {
      repair =
        "\(chain) ended at \(TimeArgument.text(certificate.notAfter)): make a new one with apns-mock certs client --topic "
        + examination.topic
    } else if text.contains("unknown ca") {
      repair =
        "the server does not know the CA of \(chain): start it with --client-ca FILE, or use a certificate that "
        + "apns-mock certs client made in its folder"
    } else {
      repair =
        "the server did not take \(chain): make a new one with apns-mock certs client --topic \(examination.topic)"
    }
    return .failed(.push, "the server refused the client certificate: \(text)", repair: repair)
  }
}
