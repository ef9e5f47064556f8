import APNSRules
import MockAPNS
import NIOHTTP1
import TLSEngine

/// Connects to a server as a provider does and reports a result for each step.
struct Diagnosis: Sendable {
  /// The listener for providers.
  var endpoint: Endpoint
  /// The name expected in the server's certificate.
  var serverName: String
  /// The path of the CA to trust; nil if there is none.
  var authority: String?
  /// The credential to push with; nil if there is none.
  var credential: Credential?
  /// The topic to push to.
  var topic: String
  /// The server's admin API data, if it is reachable.
  var known: KnownServer?
  /// The total time limit for one connection.
  var patience = Duration.seconds(5)

  /// Runs all checks and returns their results in order.
  ///
  /// - Throws: `TLSError` for invalid certificate files.
  func findings() async throws -> [DoctorFinding] {
    var findings: [DoctorFinding] = []
    let addresses: [String]
    do {
      addresses = try await self.addresses()
      let names = addresses.joined(separator: ", ")
      findings.append(.passed(.resolve, endpoint.isAddress ? "\(names) is an address" : "\(endpoint.host) is \(names)"))
    } catch {
      findings.append(unresolved("\(error)"))
      return Self.completed(findings)
    }
    guard let probeResult = try await probeResult(at: addresses, &findings) else { return Self.completed(findings) }
    let server = ServerFindings(probeResult: probeResult, diagnosis: self)
    let tls = server.tls(plain: probeResult.tls == nil ? await plainAnswer(at: addresses) : nil)
    findings.append(tls)
    guard tls.result == .passed else { return Self.completed(findings) }
    findings += [server.chain, server.name, server.alpn, server.settings]
    let clock = ClockFinding(known: known, credential: credential, now: ServerClock().now).finding
    findings += [clock, PushFinding(probeResult: probeResult, diagnosis: self, clock: clock).finding]
    return findings
  }

  // MARK: - Connecting

  private func addresses() async throws -> [String] {
    endpoint.isAddress ? [endpoint.host] : try await HostLookup.addresses(of: endpoint.host)
  }

  private func unresolved(_ reason: String) -> DoctorFinding {
    .failed(
      .resolve, "\(endpoint.host): \(reason)",
      repair: "map the name to the server in the hosts file (127.0.0.1 \(endpoint.host)) or by a container's alias, or "
        + "connect to an address: --apns 127.0.0.1:\(endpoint.port) --server-name \(endpoint.host)")
  }

  /// Connects to the addresses in order and probes the first server that accepts a connection.
  private func probeResult(at addresses: [String], _ findings: inout [DoctorFinding]) async throws -> ProbeResult? {
    var failures: [(address: String, failure: ConnectFailure)] = []
    for address in addresses {
      do {
        let probeResult = try await client(at: address).probe(sending: push())
        let others = failures.map { "; \($0.address): \($0.failure.text)" }.joined()
        findings.append(.passed(.connect, Endpoint(host: address, port: endpoint.port).description + others))
        return probeResult
      } catch let error as TLSError {
        throw error
      } catch {
        failures.append((address, ConnectFailure(error)))
      }
    }
    findings.append(unreached(failures))
    return nil
  }

  private func client(at address: String) -> PushClient {
    var client = PushClient(
      endpoint: Endpoint(host: address, port: endpoint.port), serverName: serverName,
      authorities: authority.map { [$0] } ?? [], certificate: credential?.certificateFiles)
    client.timeout = patience
    return client
  }

  private func unreached(_ failures: [(address: String, failure: ConnectFailure)]) -> DoctorFinding {
    let seen = failures.map { "\(Endpoint(host: $0.address, port: endpoint.port)): \($0.failure.text)" }
    let repair: String
    if let known, !known.apns.isEmpty, !known.apns.contains(endpoint) {
      let addresses = known.apns.map(\.description).joined(separator: ", ")
      repair = "the server whose admin API is on \(known.admin) listens on \(addresses): connect there (--apns)"
    } else if failures.contains(where: { $0.failure.kind == .refused }) {
      repair =
        "nothing listens there: start apns-mock serve --apns \(endpoint); in a container, it must listen on "
        + "0.0.0.0:\(endpoint.port) and the port must be published"
    } else {
      repair =
        "there is no route: check the address and firewalls; a server for other machines and containers must listen on "
        + "0.0.0.0:\(endpoint.port)"
    }
    return .failed(.connect, seen.joined(separator: ", "), repair: repair)
  }

  /// Returns the response to a plain HTTP request, if any.
  private func plainAnswer(at addresses: [String]) async -> AdminClient.Answer? {
    for address in addresses {
      var client = AdminClient(endpoint: Endpoint(host: address, port: endpoint.port), token: nil)
      client.timeout = min(patience, .seconds(2))
      if let answer = try? await client.request(.GET, "/livez") { return answer }
    }
    return nil
  }

  // MARK: - Push

  private var pushType: PushType {
    var topic = topic
    return topic.withUTF8 { PushType(suffixOf: UnsafeRawBufferPointer($0)) } ?? .alert
  }

  private func push() -> PushClient.Push? {
    guard let credential else { return nil }
    var headers = [("apns-topic", topic), ("apns-push-type", pushType.text)]
    if case .token(let jwt, _) = credential { headers.insert(("authorization", "bearer \(jwt)"), at: 0) }
    return PushClient.Push(
      deviceToken: String.randomDeviceToken(digits: 64), headers: headers,
      payload: Array(#"{"aps":{"alert":"apns-mock doctor"}}"#.utf8))
  }

  // MARK: - Completion

  /// Adds a skipped result for each remaining check.
  private static func completed(_ findings: [DoctorFinding]) -> [DoctorFinding] {
    guard let last = findings.last else { return [] }
    return findings
      + DoctorCheck.allCases.dropFirst(findings.count).map {
        .skipped($0, "skipped because \(last.check.title) failed")
      }
  }
}
