import APNSMockRules
import APNSMockHTTPMessage
import MockAPNS
import APNSMockNotation
import APNSMockTLSEngine

/// Sends probes to upstream and to a mock in this process.
struct ProbeRun {
  let upstream: UpstreamSettings
  let topic: String
  let providerToken: String
  let deviceToken: String?

  /// The time between two requests to a service on another machine: at most 5 a second.
  private static let interval = Duration.milliseconds(200)
  /// How many probes in a row may get no answer.
  private static let maxSilence = 3

  /// Sends the probes one after another and returns the answers.
  ///
  /// - Parameter progress: Called with the number of answers and of probes.
  /// - Throws: `CommandFailure` if upstream answers nothing at all.
  func evidence(of probes: [ProtocolProbe], progress: (Int, Int) -> Void) async throws -> Evidence {
    let server = try await mock()
    let pool = UpstreamPool(upstream)
    let (own, ownToken) = try target(of: server)
    var evidence = Evidence(endpoint: "https://\(upstream.authority)")
    var silence = 0
    for (index, probe) in probes.enumerated() {
      if probe.need == .providerTokens { await pool.close() }
      if !upstream.endpoint.isLoopback, index > 0 { try await Task.sleep(for: Self.interval) }
      let answer = await answer(to: probe, of: pool, topic: topic, providerToken: providerToken)
      if evidence.results.isEmpty, case .refused(let problem) = answer.result, answer.connection == nil {
        await stop(pool, own, server)
        throw CommandFailure(.unreachable, problem)
      }
      let mockAnswer = await self.answer(to: probe, of: own, topic: topic, providerToken: ownToken)
      let result = Evidence.Result(probe, mock: .init(mockAnswer), upstream: .init(answer))
      evidence.results.append(result)
      progress(index + 1, probes.count)
      let status = result.upstream.status
      silence = status == nil || (status ?? 0) >= 500 ? silence + 1 : 0
      if index == 0, probe.status != 403, status == 403 {
        evidence.stopped =
          "the service does not accept the credential: \(probe.name) was answered 403 \(result.upstream.reason ?? "")"
      } else if status == 429 {
        evidence.stopped = "\(probe.name) was answered 429 \(result.upstream.reason ?? "")"
      } else if silence == Self.maxSilence {
        evidence.stopped = "\(silence) probes in a row got no answer, or one of the status 5xx"
      }
      if evidence.stopped != nil { break }
    }
    evidence.addSettings(mock: own.figures.settings, upstream: pool.figures.settings)
    await stop(pool, own, server)
    return evidence
  }

  private func stop(_ pool: UpstreamPool, _ own: UpstreamPool, _ server: MockServer) async {
    await pool.close()
    await own.close()
    await server.stop()
  }

  /// Sends a probe, again if a GOAWAY or a refused stream says that it was not processed.
  private func answer(
    to probe: ProtocolProbe, of pool: UpstreamPool, topic: String, providerToken: String
  ) async -> UpstreamAnswer {
    let headers = HeaderList(probe.fields(topic: topic, providerToken: providerToken, deviceToken: deviceToken))
    let answer = await pool.send(headers, probe.body)
    switch answer.result {
    case .excluded, .refused:
      if !upstream.endpoint.isLoopback { try? await Task.sleep(for: Self.interval) }
      return await pool.send(headers, probe.body)
    case .response, .unknown: return answer
    }
  }

  /// Starts a mock whose only known topic is that of the probes.
  private func mock() async throws -> MockServer {
    var configuration = MockServer.Configuration.ephemeral()
    configuration.requiresKnownTopics = true
    configuration.magicTokens = false
    let server = try await MockServer.start(configuration)
    server.state.keys.update { keys in
      for var key in keys.keys.values {
        key.teamTopics = [topic]
        keys = keys.adding(key)
      }
    }
    return server
  }

  private func target(of server: MockServer) throws -> (UpstreamPool, providerToken: String) {
    let settings = server.settings
    var own = UpstreamSettings(endpoint: MockServer.Endpoint(host: "127.0.0.1", port: settings.port))
    own.authorities = [settings.caPath]
    own.connections = 1
    if let certificate = upstream.certificate {
      // As the service knows it: a certificate of the same topics and environments, which this mock trusts.
      let chain = try X509Certificate.chain(pem: try Files.text(of: certificate.chain))
      let facts = chain.first.map { PeerCertificate($0) }
      let topics = facts.map { $0.topics.isEmpty ? [$0.subjectUID ?? topic] : $0.topics } ?? [topic]
      var environments: Set<PushEnvironment> = []
      if facts?.development == true { environments.insert(.sandbox) }
      if facts?.production == true { environments.insert(.production) }
      let folder = try CertificateFolder.open(path: String(settings.caPath.dropLast("/ca.pem".count)))
      let made = try folder.makeClientCertificate(topics: topics, environments: environments)
      own.certificate = (made.certificate, made.key)
      return (UpstreamPool(own), "")
    }
    let request = ProviderTokenRequest(
      keyID: settings.keyID, teamID: settings.teamID, issuedAt: ServerClock().now / 1000)
    return (UpstreamPool(own), try request.signed(withKeyAt: settings.keyPath))
  }
}
