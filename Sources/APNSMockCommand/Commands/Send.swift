import APNSRules
import ArgumentParser
import HTTPMessage
import Inbox
import MockAPNS
import TLSEngine

/// `apns-mock send`
struct Send: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Push to a device token, through the server's front door as a provider would.",
    discussion: "Prints status, reason and apns-id. Exit code 0 if the push was accepted, 1 if it was not.")

  @Argument(help: "The device token.")
  var token: String

  @Option(name: .long, help: "apns-topic. (default: com.example.app with the suffix of the push type)")
  var topic: String?

  @Option(name: .long, help: "apns-push-type.")
  var pushType = "alert"

  @Option(name: .long, help: "apns-priority. (default: none, or 5 for background)")
  var priority: String?

  @Option(name: .long, help: "apns-id. (default: none, the server makes one)")
  var id: String?

  @Option(name: .long, parsing: .unconditional, help: "apns-expiration, in seconds since 1970.")
  var expiration: String?

  @Option(name: .long, help: "apns-collapse-id.")
  var collapseId: String?

  @Option(name: .long, help: "The body: JSON text, a file, or - for standard input. (default: a short greeting)")
  var payload: String?

  @Option(name: .long, help: "Push with this provider certificate (PEM) instead of a provider token.")
  var cert: String?

  @Option(name: .long, help: "The certificate's private key. (default: beside it, as apns-mock certs names it)")
  var certKey: String?

  @Option(name: .long, help: "Where providers connect, HOST:PORT. [APNS_MOCK_APNS] (default: the server is asked)")
  var apns: String?

  @OptionGroup var server: ServerFlags
  @OptionGroup var folder: FolderFlags
  @OptionGroup var output: OutputFlags

  func run() async throws {
    let environment = Environment.variables
    let running = try RunningServer(server, environment: environment)
    let files = ServerFiles(certs: folder.certs, portFile: running.portFile, environment: environment)
    let door = try await FrontDoor(of: running, named: try namedAddress(environment))
    var headers = pushHeaders
    if cert == nil {
      let jwt = FreshToken(keyID: files.keyID, teamID: files.teamID, issuedAt: door.now / 1000)
      headers.insert(("authorization", "bearer " + (try jwt.signed(withKeyAt: files.key))), at: 0)
    }
    let push = PushClient.Push(deviceToken: token, headers: headers, payload: try body())
    try report(await outcome(of: push, at: door.endpoint, files))
  }

  private func namedAddress(_ environment: [String: String]) throws -> Endpoint? {
    let given = [
      (apns, Setting.apns.flag),
      (environment.given(Setting.apns.variable).flatMap { Setting.list($0).first }, Setting.apns.variable),
    ]
    for case (let text?, let source) in given {
      do throws(BadValue) {
        return try Value.endpoint(text)
      } catch {
        throw CommandFailure(.usage, SettingError(error, from: source).description)
      }
    }
    return nil
  }

  private var knownType: PushType? { PushType.allCases.first { $0.text == pushType } }

  private var pushHeaders: [(String, String)] {
    var headers = [
      ("apns-topic", topic ?? CertificateFolder.topic + (knownType?.topicSuffix ?? "")), ("apns-push-type", pushType),
    ]
    // What APNs asks of a background push (APNS.md section 5, documented).
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
    // No path begins with a brace, so JSON needs no flag of its own.
    return payload.trimmed.hasPrefix("{") ? Array(payload.utf8) : try Files.contents(of: payload)
  }

  private func outcome(
    of push: PushClient.Push, at endpoint: Endpoint, _ files: ServerFiles
  ) async throws -> PushClient.Outcome {
    let name = endpoint.isAddress ? "localhost" : endpoint.host
    let client = PushClient(
      endpoint: endpoint, serverName: name, authorities: [files.ca], certificate: try cert.map(certificatePair))
    do {
      guard let outcome = try await client.send([push]).first else { return .disconnected(reason: "no outcome") }
      return outcome
    } catch let error as TLSError {
      throw CommandFailure(.usage, "\(error); apns-mock certs makes certificates, --certs DIR says where they are")
    } catch {
      throw CommandFailure(.unreachable, "\(error); is apns-mock serve running there, with the CA \(files.ca)?")
    }
  }

  /// The certificate with its key: `client-key.pem` beside `client.pem`, `client.TOPIC.key` beside `client.TOPIC.pem`.
  private func certificatePair(_ path: String) throws -> (chain: String, key: String) {
    if let certKey { return (path, certKey) }
    let stem = path.hasSuffix(".pem") ? String(path.dropLast(4)) : path
    for key in [stem + "-key.pem", stem + ".key"] where (try? Files.contents(of: key)) != nil { return (path, key) }
    throw CommandFailure(.usage, "--cert: no key lies beside \(path): name it with --cert-key FILE")
  }
}
