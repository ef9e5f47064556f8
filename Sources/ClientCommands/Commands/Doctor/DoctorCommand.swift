import ArgumentParser
import MockAPNS
import APNSMockNotation
import APNSMockTLSEngine

/// `apns-mock doctor`
struct DoctorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor", abstract: "Connect to a server as a provider does, and report problems and their repair.",
    discussion: """
      Checks DNS, TCP, TLS, the certificate, HTTP/2 and the clocks, and sends one push to a random device token. By \
      default, it trusts the CA and signs with the key of the certificate folder.

      Exit code 0 if all checks pass, 1 if one fails, 4 if the server is unreachable.
      """)

  @Option(
    name: .long,
    help: .value("host:port", "The address for providers, HOST:PORT. [APNS_MOCK_APNS] (default: the server's)"))
  var apns: String?

  @Option(
    name: .long, help: .value("host", "The name expected in the server's certificate. (default: the host of --apns)"))
  var serverName: String?

  @Option(
    name: .long,
    help: .value("file", "The CA to trust, a PEM file. [APNS_MOCK_CA] (default: ca.pem of the certificate folder)"),
    completion: .file())
  var ca: String?

  @OptionGroup var credential: DoctorCredentialFlags

  @Option(name: .long, help: .value("topic", "apns-topic. (default: com.example.app, or the certificate's topic)"))
  var topic: String?

  @Option(name: .long, help: .value("duration", "The time limit for the server's response."))
  var timeout = "5s"

  @OptionGroup var flags: ProviderFlags

  func validate() throws {
    try DurationArgument.check(timeout, flag: "--timeout")
    // The limit for names in certificates and SNI.
    if let serverName, !(1...253).contains(serverName.utf8.count) {
      throw ValidationError("--server-name must be a host name or an IP address")
    }
  }

  private var timeLimit: Duration { DurationFormat.duration(timeout) ?? .seconds(5) }

  func run() async throws {
    var diagnosis = try await diagnosis(Environment.variables)
    do {
      try await diagnosis.run()
    } catch let error as TLSError {
      throw CommandFailure(.usage, "\(error)")
    }
    let failed = diagnosis.results.first { $0.status == .failed }?.check
    report(diagnosis, isWell: failed == nil)
    switch failed {
    case nil: return
    case .resolve, .connect: throw ExitCode(ExitStatus.unreachable.rawValue)
    default: throw ExitCode(ExitStatus.failed.rawValue)
    }
  }

  /// Returns the diagnosis to run, which flags, variables and the running server's admin API determine.
  private func diagnosis(_ environment: [String: String]) async throws -> Diagnosis {
    let named = try MockServer.Endpoint.named(byFlag: apns, of: .apns, flags.server.variables(environment))
    let (running, known) = try await runningServer(environment)
    let files = ServerFiles(certs: flags.folder.certs, portFile: running?.portFile, environment: environment)
    let standard = MockServer.Endpoint(host: "127.0.0.1", port: 2197)
    let endpoint = (named ?? running?.portFile?.apns.first?.endpoint ?? known?.apns.first ?? standard).reachable
    let credential = try credential.chosen(files)
    return Diagnosis(
      endpoint: endpoint, serverName: serverName ?? endpoint.host, authority: try authority(files),
      credential: credential,
      topic: topic ?? credential?.topic ?? CertificateFolder.topic,
      known: known?.listens(on: endpoint) == true ? known?.seen(at: endpoint) : nil,
      timeout: timeLimit)
  }

  /// Returns the server that the client commands find, if it responds. An unreachable admin API is no failure, because
  /// providers do not need it.
  private func runningServer(_ environment: [String: String]) async throws -> (ServerLocation?, ServerDetails?) {
    let isNamed = flags.server.portFile != nil || flags.server.admin != nil
    let running: ServerLocation
    do {
      running = try ServerLocation(flags.server, environment: environment)
    } catch let failure as CommandFailure where failure.status == .unreachable && !isNamed {
      return (nil, nil)
    }
    do {
      let isKnown = isNamed || running.portFile != nil
      return (running, try await ServerDetails(running, isNamed: isKnown, timeout: timeLimit))
    } catch let failure as CommandFailure {
      if isNamed { StandardStream.error.line("admin API: \(failure)") }
      return (running, nil)
    }
  }

  /// Returns the path of the CA; nil if none was specified and the default file does not exist.
  private func authority(_ files: ServerFiles) throws -> String? {
    let path = ca ?? files.ca
    do {
      _ = try X509Certificate.chain(pem: try Files.text(of: path))
      return path
    } catch {
      if ca == nil, !WholeFile(path: path).exists { return nil }
      let file = error is TLSError ? "\(path): \(error)" : "\(error)"
      throw CommandFailure(.usage, "\(file); --ca must be the server's CA in PEM: curl http://ADMIN/ca.pem prints it")
    }
  }

  private func report(_ diagnosis: Diagnosis, isWell: Bool) {
    let authority = diagnosis.authority ?? "no CA"
    let head = "\(diagnosis.endpoint) as \(diagnosis.serverName), trusting \(authority)"
    let isColored = StandardStream.output.supportsColor
    let text = [head] + diagnosis.results.map { $0.text(colored: isColored) }
    flags.output.print(text: text.joined(separator: "\n")) { writer in
      writer.member("ok", isWell)
      writer.member("apns", diagnosis.endpoint.description)
      writer.member("server_name", diagnosis.serverName)
      writer.member("ca", diagnosis.authority)
      writer.arrayMember("checks") { writer in
        for result in diagnosis.results { writer.object(result.write) }
      }
    }
  }
}

/// The credential that `doctor` uses: a provider token, a key to sign one with, or a provider certificate.
struct DoctorCredentialFlags: ParsableArguments {
  @Option(name: .long, help: .value("token", "The provider token (a JWT) to push with."))
  var token: String?

  @OptionGroup var signing: SigningFlags
  @OptionGroup var certificate: ProviderCertificateFlags

  func validate() throws {
    let given = [("--token", token), ("--key", signing.key), ("--cert", certificate.cert)].filter { $0.1 != nil }.map(
      \.0)
    guard given.count < 2 else { throw ValidationError("Specify only one of \(given.joined(separator: ", "))") }
  }

  /// Returns the specified credential, or one from the server's files; nil if there is none.
  func chosen(_ files: ServerFiles) throws -> Credential? {
    if let token { return try Credential(jwt: token) }
    if let files = try certificate.files() { return try Credential(files) }
    let keyID = signing.keyID ?? signing.key.flatMap(AppleKeyFile.keyID) ?? files.keyID
    let path = signing.key ?? files.key
    if signing.key == nil, !WholeFile(path: path).exists { return nil }
    return try Credential(keyAt: path, keyID: keyID, teamID: signing.teamID ?? files.teamID, now: ServerClock().now)
  }
}
