import APNSMockRules
import APNSMockInbox
import ArgumentParser
import APNSMockHTTP2Session
import APNSMockHTTPMessage
import MockAPNS
import struct HTTPTypes.HTTPRequest
import APNSMockNotation
import APNSMockTLSEngine

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `apns-mock send`
struct SendCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "send", abstract: "Send a push to a device token over HTTP/2, as a provider does.",
    discussion: """
      Prints status, reason and apns-id; for a push that was not accepted also the cause and the command that explains \
      it, on standard error. Exit code 0 if the push was accepted, 1 if it was not.
      """)

  @Argument(help: "The device token.")
  var token: String

  @Option(
    name: .long,
    help: .value(
      "topic", "apns-topic. (default: com.example.app or the certificate's topic, with the suffix of the push type)"))
  var topic: String?

  @Option(name: .long, help: .value("push-type", "apns-push-type."), completion: .pushType)
  var pushType = "alert"

  @Option(
    name: .long, help: .value("number", "apns-priority. (default: none, or 5 for background)"),
    completion: .list(["1", "5", "10"]))
  var priority: String?

  @Option(name: .long, help: .value("uuid", "apns-id. (default: none, the server generates one)"))
  var id: String?

  @Option(name: .long, parsing: .unconditional, help: .value("seconds", "apns-expiration, in seconds since 1970."))
  var expiration: String?

  @Option(name: .long, help: .value("text", "apns-collapse-id."))
  var collapseId: String?

  @Option(
    name: .long, help: .value("file", "The body: JSON text, a file, or - for standard input. (default: a short alert)"),
    completion: .file())
  var payload: String?

  @OptionGroup var signing: SigningFlags
  @OptionGroup var providerCertificate: ProviderCertificateFlags

  @Option(
    name: .long,
    help: .value("file", "The CA to trust, a PEM file. [APNS_MOCK_CA] (default: ca.pem of the certificate folder)"),
    completion: .file())
  var ca: String?

  @Option(
    name: .long,
    help: .value("host:port", "The address for providers, HOST:PORT. [APNS_MOCK_APNS] (default: the server's)"))
  var apns: String?

  @OptionGroup var flags: ProviderFlags

  func validate() throws {
    guard providerCertificate.cert == nil || signing.key == nil else {
      throw ValidationError(
        "--key signs provider tokens, which a certificate replaces: the key of --cert is --cert-key FILE")
    }
  }

  func run() async throws {
    let environment = Environment.variables
    let running = try ServerLocation(flags.server, environment: environment)
    let files = ServerFiles(certs: flags.folder.certs, portFile: running.portFile, environment: environment)
    let target = try await ProviderTarget(
      of: running, named: try MockServer.Endpoint.named(byFlag: apns, of: .apns, flags.server.variables(environment)))
    let certificate = try providerCertificate.files()
    var headers = try pushHeaders(certificate)
    if certificate == nil {
      let jwt = ProviderTokenRequest(
        keyID: try signing.chosenKeyID(files), teamID: signing.teamID ?? files.teamID,
        issuedAt: target.serverTime / 1000)
      headers.insert(("authorization", "bearer " + (try jwt.signed(withKeyAt: signing.key ?? files.key))), at: 0)
    }
    let push = PushClient.Push(deviceToken: token, headers: headers, payload: try body())
    let outcome = try await outcome(of: push, at: target.endpoint, files, certificate)
    try report(outcome, await explanation(of: outcome, by: running))
  }

  private var knownType: PushType? { PushType.allCases.first { $0.text == pushType } }

  private func pushHeaders(_ certificate: ProviderCertificateFiles?) throws -> [(String, String)] {
    let bundleID = try certificate?.certificate().subjectUID ?? CertificateFolder.topic
    var headers = [
      ("apns-topic", topic ?? bundleID + (knownType?.topicSuffix ?? "")), ("apns-push-type", pushType),
    ]
    // APNs requires priority 5 for background pushes (Protocol.md, section 5, documented).
    if let priority = priority ?? (knownType == .background ? "5" : nil) { headers.append(("apns-priority", priority)) }
    if let id { headers.append(("apns-id", id)) }
    if let expiration { headers.append(("apns-expiration", expiration)) }
    if let collapseId { headers.append(("apns-collapse-id", collapseId)) }
    return headers
  }

  private func body() throws -> [UInt8] {
    guard let payload else {
      let text =
        knownType == .background ? #"{"aps":{"content-available":1}}"# : #"{"aps":{"alert":"Hello from apns-mock"}}"#
      return Array(text.utf8)
    }
    if payload.isEmpty { throw CommandFailure(.usage, "--payload: specify JSON text, a file, or - for standard input") }
    // Text that begins with a brace is JSON, not a path.
    let body = payload.trimmed.hasPrefix("{") ? Array(payload.utf8) : try fileContents(payload)
    let problem = JSONText.problem(in: body)?.description
    let isObject = body.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "{")
    if let problem = problem ?? (isObject ? nil : "it is not an object") {
      StandardStream.error.line("warning: the payload is not a JSON object, which APNs requires: \(problem)")
    }
    return body
  }

  /// Returns the content of a file.
  ///
  /// - Throws: `CommandFailure` that says how to write what is not a file: a text, or a path as curl has it.
  private func fileContents(_ path: String) throws -> [UInt8] {
    do {
      return try Files.contents(of: path)
    } catch let failure as CommandFailure {
      let repair =
        if path.hasPrefix("@") {
          "a file is specified without @"
        } else {
          "JSON text begins with a brace, as in '{\"aps\":{\"alert\":\"Hello\"}}'"
        }
      throw CommandFailure(failure.status, "--payload: \(failure); \(repair)")
    }
  }

  private func outcome(
    of push: PushClient.Push, at endpoint: MockServer.Endpoint, _ files: ServerFiles,
    _ certificate: ProviderCertificateFiles?
  ) async throws -> PushClient.Outcome {
    let name = endpoint.isAddress ? "localhost" : endpoint.host
    let client = PushClient(
      endpoint: endpoint, serverName: name, authorities: ca.map { [$0] } ?? files.authorities,
      certificate: certificate.map { ($0.chain, $0.key) }
    )
    do {
      guard let outcome = try await client.send([push]).first else { return .disconnected(reason: "no outcome") }
      return outcome
    } catch let error as TLSError {
      throw CommandFailure(
        .usage,
        "\(error); to create certificates: apns-mock certs; to use another folder: --certs DIR; another CA: --ca FILE")
    } catch let error as PushClientError where error.wasConnected {
      let flag = certificate.map { " --cert \($0.chain.shellQuoted)" } ?? ""
      throw CommandFailure(.failed, "\(error); to find the cause: apns-mock doctor --apns \(endpoint)\(flag)")
    } catch {
      throw CommandFailure(.unreachable, "\(error); is apns-mock serve running there?")
    }
  }
}

extension SendCommand {
  /// The response body of a rejected push (Protocol.md, section 7.1).
  private struct Rejection: Decodable {
    var reason: String
    var timestamp: Int64?
  }

  private struct Records: Decodable {
    var items: [Record]

    struct Record: Decodable {
      var seq: PushName
    }
  }

  /// Returns the explanation of the sent push; nil if the admin API does not have it, for example because the push went
  /// to another server.
  private func explanation(of outcome: PushClient.Outcome, by server: ServerLocation) async -> PushExplanation? {
    let path = "/api/v1/pushes"
    do {
      var name = id
      if case .response(let response) = outcome { name = response.headers["apns-id"] ?? name }
      if name == nil {
        // Without a response, only the newest push to the device token can be the one that was sent.
        let newest = try await server.client.request(
          .get, "\(path)?device_token=\(token.percentEncoded)&order=desc&limit=1")
        name = try newest.decoded(Records.self).items.last?.seq.description
      }
      guard let name else { return nil }
      return try await server.client.request(.get, "\(path)/\(name.percentEncoded)/explain").decoded(
        PushExplanation.self)
    } catch {
      return nil
    }
  }

  /// Prints the result of the push.
  ///
  /// - Throws: `ExitCode` or `CommandFailure` if the push was not accepted.
  func report(_ outcome: PushClient.Outcome, _ explanation: PushExplanation?) throws {
    let hint = explanation.map { "to see all checks and rules: \($0.command)" }
    let suffix = hint.map { "; \($0)" } ?? ""
    switch outcome {
    case .response(let response): try report(response, explanation, hint)
    case .reset(let code):
      let code = HTTP2ErrorCode.description(of: code)
      throw CommandFailure(.failed, "the server reset the stream without a response: \(code)\(suffix)")
    case .disconnected(let reason):
      throw CommandFailure(.failed, "the server closed the connection without a response: \(reason)\(suffix)")
    }
  }

  private func report(_ response: HTTPResponse, _ explanation: PushExplanation?, _ hint: String?) throws {
    let id = response.headers["apns-id"]
    let uniqueID = response.headers["apns-unique-id"]
    let rejection = try? JSONDecoder().decode(Rejection.self, from: Data(response.body))
    let text = ["\(response.status)", rejection?.reason, id.map { "apns-id \($0)" }].compactMap(\.self)
    let isAccepted = response.status == 200
    flags.output.print(text: text.joined(separator: " ").onOneLine) { writer in
      writer.member("status", response.status)
      writer.member("apns_id", id)
      writer.member("apns_unique_id", uniqueID)
      writer.member("reason", rejection?.reason)
      if let timestamp = rejection?.timestamp { writer.member("timestamp", timestamp) }
      writer.member("seq", explanation?.seq)
      writer.member("detail", isAccepted ? nil : explanation?.cause)
    }
    guard !isAccepted else { return }
    if !flags.output.json {
      for line in [explanation?.cause, hint].compactMap(\.self) { StandardStream.error.line(line) }
    }
    throw ExitCode(ExitStatus.failed.rawValue)
  }
}
