import Notation
import ArgumentParser
import HTTP2Session
import HTTPMessage
import MockAPNS

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Send {
  /// The response body of a rejected push (Protocol.md, section 7.1).
  private struct Rejection: Decodable {
    var reason: String
    var timestamp: Int64?
  }

  /// Prints the result of the push.
  ///
  /// - Throws: `ExitCode` or `CommandFailure` if the push was not accepted.
  func report(_ outcome: PushClient.Outcome) throws {
    switch outcome {
    case .answered(let answer): try report(answer)
    case .reset(let code):
      throw CommandFailure(
        .failed, "the server reset the stream without a response: \(HTTP2ErrorCode.description(of: code))")
    case .disconnected(let reason):
      throw CommandFailure(.failed, "the server closed the connection without a response: \(reason)")
    }
  }

  private func report(_ answer: HTTPResponse) throws {
    let id = answer.headers["apns-id"]
    let uniqueID = answer.headers["apns-unique-id"]
    let rejection = try? JSONDecoder().decode(Rejection.self, from: Data(answer.body))
    let text = ["\(answer.status)", rejection?.reason, id.map { "apns-id \($0)" }].compactMap(\.self)
    output.print(text: text.joined(separator: " ").onOneLine) { writer in
      writer.member("status", answer.status)
      writer.member("apns_id", id)
      writer.member("apns_unique_id", uniqueID)
      writer.member("reason", rejection?.reason)
      if let timestamp = rejection?.timestamp { writer.member("timestamp", timestamp) }
    }
    guard answer.status == 200 else { throw ExitCode(ExitStatus.failed.rawValue) }
  }
}
