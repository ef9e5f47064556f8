import APNSMockAdminAPI
import APNSMockRules
import MockAPNS
import APNSMockNotation
import APNSMockTLSEngine
import APNSMockTestSupport
import Testing

@testable import APNSMockClientCommands

/// Common problems with a provider's credentials: key, provider token, certificate, time.
@Suite struct DoctorPushTests {
  // MARK: - Keys

  @Test func untrustedKey() async throws {
    try await TestServer.run { mock in
      let credential = try mock.credential(keyID: "ABC123DEFG", teamID: "DEF123GHIJ")
      let diagnosis = try await mock.examine(credential)
      #expect(diagnosis.failed == [.push], "\(diagnosis)")
      #expect(diagnosis.seen(.push).hasPrefix("403 InvalidProviderToken, apns-id "))
      #expect(diagnosis.repair(.push).contains("does not trust the key ABC123DEFG (it trusts MOCKKEY001)"))
      #expect(diagnosis.repair(.push).contains("apns-mock key add FILE.p8 --key-id ABC123DEFG --team-id DEF123GHIJ"))
      let unknown = try await mock.examine(credential, isKnown: false)
      #expect(unknown.repair(.push).contains("trusts it for another team than DEF123GHIJ"))
    }
  }

  @Test func differentKeyWithTheSameID() async throws {
    let folder = try TemporaryFolder()
    let key = try folder.file("key.p8", try ES256PrivateKey().pem)
    try await TestServer.run { mock in
      let diagnosis = try await mock.examine(try mock.credential(key: key))
      #expect(diagnosis.failed == [.push], "\(diagnosis)")
      #expect(diagnosis.repair(.push).contains("the server trusts another key with the id MOCKKEY001"))
      #expect(diagnosis.repair(.push).contains("apns-mock key rm MOCKKEY001"))
    }
  }

  /// A token whose form is wrong is not blamed on the key, whose removal would not help.
  @Test(arguments: [true, false]) func signatureWithoutLeadingZeros(isKnown: Bool) async throws {
    try await TestServer.run { mock in
      guard case .token(let jwt, _) = try mock.credential() else { return }
      let parts = jwt.split(separator: ".")
      let signature = try #require(Array(parts[2].utf8).withUnsafeBytes { Base64URL($0)?.bytes })
      let short = "\(parts[0]).\(parts[1]).\(Base64URL.text(Array(signature.dropFirst())))"
      let diagnosis = try await mock.examine(try Credential(jwt: short), isKnown: isKnown)
      #expect(diagnosis.failed == [.push], "\(diagnosis)")
      #expect(diagnosis.seen(.push).hasPrefix("403 InvalidProviderToken"))
      #expect(
        diagnosis.repair(.push).hasPrefix("the provider token's signature has 63 bytes: r or s was written without"))
      #expect(!diagnosis.repair(.push).contains("key rm"))
    }
  }

  @Test func teamOfAnotherKey() async throws {
    try await TestServer.run { mock in
      let diagnosis = try await mock.examine(try mock.credential(teamID: "DEF123GHIJ"))
      #expect(diagnosis.failed == [.push], "\(diagnosis)")
      #expect(diagnosis.repair(.push).contains("for the team MOCKTEAM01, but the token's iss is DEF123GHIJ"))
    }
  }

  @Test func swappedKeyIDAndTeamID() async throws {
    try await TestServer.run { mock in
      let diagnosis = try await mock.examine(try mock.credential(keyID: "MOCKTEAM01", teamID: "MOCKKEY001"))
      #expect(diagnosis.failed == [.push], "\(diagnosis)")
      #expect(
        diagnosis.repair(.push)
          == "key id and team id are swapped: kid must be MOCKKEY001, and iss MOCKTEAM01")
    }
  }

  @Test(arguments: [true, false])
  func keyOfTheWrongEnvironment(isKnown: Bool) async throws {
    try await TestServer.run { mock in
      let publicKey = try AppleKeyFile.publicKey(at: mock.certificates.providerKeyPath)
      mock.state.keys.update {
        $0 = $0.adding(
          TrustedKey(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", publicKey: publicKey, environment: .production))
      }
      let credential = try mock.credential(keyID: "ABC123DEFG", teamID: "DEF123GHIJ")
      let diagnosis = try await mock.examine(credential, isKnown: isKnown)
      #expect(diagnosis.failed == [.push], "\(diagnosis)")
      #expect(diagnosis.seen(.push).contains("403 BadEnvironmentKeyInToken"))
      #expect(
        diagnosis.repair(.push).contains(
          "the key ABC123DEFG is valid only in production, and the server's environment is sandbox"))
      #expect(diagnosis.repair(.push).contains("--environment production"))
    }
  }

  @Test func topicNotAllowedForKey() async throws {
    try await TestServer.run { mock in
      let publicKey = try AppleKeyFile.publicKey(at: mock.certificates.providerKeyPath)
      mock.state.keys.update {
        $0 = $0.adding(
          TrustedKey(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", publicKey: publicKey, topics: ["com.acme.other"]))
      }
      let diagnosis = try await mock.examine(try mock.credential(keyID: "ABC123DEFG", teamID: "DEF123GHIJ"))
      #expect(diagnosis.failed == [.push], "\(diagnosis)")
      #expect(diagnosis.seen(.push).contains("400 TopicDisallowed"))
      #expect(diagnosis.repair(.push).contains("apns-mock key ls"))
    }
  }

  // MARK: - Time

  @Test func movedServerClock() async throws {
    try await TestServer.run { mock in
      mock.state.clock.advance(by: 7_200_000)
      let diagnosis = try await mock.examine()
      #expect(diagnosis.failed == [.clock, .push], "\(diagnosis)")
      // The seconds allow for a slow machine between the two readings of the clocks.
      #expect(diagnosis.seen(.clock).contains(/ago by the server's clock, which is 2h([0-9]+s)? ahead/))
      #expect(diagnosis.repair(.clock).contains("apns-mock clock real --admin \(mock.admin.address)"))
      #expect(diagnosis.seen(.push).contains("403 ExpiredProviderToken"))
      #expect(diagnosis.repair(.push) == diagnosis.repair(.clock))
      mock.state.clock.advance(by: -14_400_000)
      let behind = try await mock.examine()
      #expect(behind.failed == [.clock, .push], "\(behind)")
      #expect(
        behind.seen(.clock).contains(/in the future by the server's clock, which is (2h|1h59m[0-9]+s) behind/))
    }
  }

  @Test func movedClockWithoutAdminAPI() async throws {
    try await TestServer.run { mock in
      mock.state.clock.advance(by: 7_200_000)
      let diagnosis = try await mock.examine(isKnown: false)
      #expect(diagnosis.failed == [.push], "\(diagnosis)")
      #expect(diagnosis.skipped == [.clock])
      #expect(diagnosis.repair(.push).contains("apns-mock clock show --admin HOST:PORT"))
    }
  }

  @Test func frozenClockSlightlyOff() async throws {
    try await TestServer.run { mock in
      mock.state.clock.freeze(at: ServerClock().now + 600_000)
      let diagnosis = try await mock.examine()
      #expect(diagnosis.failed == [.clock], "pushes still go")
      #expect(diagnosis.seen(.clock).hasSuffix("ahead and frozen"))
      mock.state.clock.freeze(at: ServerClock().now - 60_000)
      let near = try await mock.examine()
      #expect(near.failed.isEmpty, "\(near)")
      #expect(near.seen(.clock).hasSuffix("and frozen"))
    }
  }

  @Test(arguments: [true, false])
  func expiredToken(isKnown: Bool) async throws {
    try await TestServer.run { mock in
      let diagnosis = try await mock.examine(try mock.credential(age: 7200), isKnown: isKnown)
      #expect(diagnosis.failed == [.clock, .push], "\(diagnosis)")
      #expect(diagnosis.seen(.clock).hasPrefix("the provider token was issued 2h"))
      #expect(diagnosis.repair(.push).contains("sign a new token every 20 to 60 minutes"))
    }
  }

  @Test func tokenIssuedInTheFuture() async throws {
    try await TestServer.run { mock in
      let diagnosis = try await mock.examine(try mock.credential(age: -7200))
      #expect(diagnosis.failed == [.clock, .push], "\(diagnosis)")
      #expect(diagnosis.repair(.clock) == "set the clock of the machine that signed it (NTP)")
    }
  }

  @Test func issueTimeInMilliseconds() {
    let now: Int64 = 1_800_000_000_123
    let token = DecodedToken(keyID: "K", teamID: "T", issuedAt: Double(now))
    let diagnosis = Diagnosis(
      endpoint: MockServer.Endpoint(host: "localhost", port: 1), serverName: "localhost", credential: .token("", token),
      topic: "com.example.app")
    #expect(
      diagnosis.checkClocks(now: now)
        == .failed(
          "the provider token's iat is 1800000000123, a time in milliseconds",
          repair: "the provider must write iat in seconds since 1970"))
  }

  // MARK: - Certificates

  private static func certificate(
    _ mock: TestServer, _ environments: Set<PushEnvironment> = [.sandbox, .production], expired: Bool = false
  ) throws -> Credential {
    let made = try mock.certificates.makeClientCertificate(
      topics: ["com.acme.app", "com.acme.app.voip"], environments: environments, expired: expired)
    return try Credential(ProviderCertificateFiles(chain: made.certificate, key: nil))
  }

  @Test func validClientCertificate() async throws {
    try await TestServer.run { mock in
      let diagnosis = try await mock.examine(try Self.certificate(mock))
      #expect(diagnosis.failed.isEmpty, "\(diagnosis)")
      #expect(diagnosis.seen(.push).contains("200 for the topic com.acme.app,"))
      #expect(diagnosis.seen(.settings).contains("MAX_CONCURRENT_STREAMS 1000"))
      let voip = try await mock.examine(try Self.certificate(mock)) { $0.topic = "com.acme.app.voip" }
      #expect(voip.failed.isEmpty, "the push type follows the topic: \(voip)")
      let other = try await mock.examine(try Self.certificate(mock)) { $0.topic = "com.acme.other" }
      #expect(other.failed == [.push], "\(other)")
      #expect(other.repair(.push).contains("the certificate allows com.acme.app, com.acme.app.voip"))
    }
  }

  @Test func certificateOfTheWrongEnvironment() async throws {
    try await TestServer.run { mock in
      let diagnosis = try await mock.examine(try Self.certificate(mock, [.production]))
      #expect(diagnosis.failed == [.push], "\(diagnosis)")
      #expect(
        diagnosis.seen(.push).contains(#"GOAWAY instead of a response: code 0 {"reason":"BadCertificateEnvironment"}"#))
      #expect(diagnosis.seen(.push).contains("the certificate is for production, the server's environment is sandbox"))
      #expect(diagnosis.repair(.push).contains("start the server with --environment production"))
      #expect(diagnosis.repair(.push).contains("apns-mock certs client --topic com.acme.app"))
    }
  }

  @Test func expiredClientCertificate() async throws {
    try await TestServer.run { mock in
      let diagnosis = try await mock.examine(try Self.certificate(mock, expired: true))
      #expect(diagnosis.failed == [.push], "\(diagnosis)")
      #expect(diagnosis.seen(.push).contains("the server rejected the client certificate"))
      #expect(diagnosis.repair(.push).contains("expired at"))
      #expect(diagnosis.repair(.push).contains("create one with apns-mock certs client --topic com.acme.app"))
    }
  }

  @Test func clientCertificateOfAnUnknownCA() async throws {
    let folder = try TemporaryFolder()
    let other = try CertificateFolder.open(path: folder.path)
    try await TestServer.run { mock in
      let files = try ProviderCertificateFiles(chain: other.clientPath, key: nil)
      let diagnosis = try await mock.examine(try Credential(files))
      #expect(diagnosis.failed == [.push], "\(diagnosis)")
      #expect(diagnosis.repair(.push).contains("does not trust the CA of \(other.clientPath)"))
      #expect(diagnosis.repair(.push).contains("--client-ca FILE"))
    }
  }

  @Test func certificateWithoutPushExtensions() async throws {
    try await TestServer.run { mock in
      let credential = Credential.certificate(
        chain: mock.certificates.serverPath, key: mock.certificates.serverKeyPath,
        PeerCertificate(try X509Certificate.chain(pem: Files.text(of: mock.certificates.serverPath))[0]))
      let diagnosis = try await mock.examine(credential)
      #expect(diagnosis.failed == [.push], "\(diagnosis)")
      #expect(diagnosis.repair(.push).contains("create a new one with apns-mock certs client"))
    }
  }

  @Test func pushIsSkippedWithoutCredentials() async throws {
    try await TestServer.run { mock in
      let diagnosis = try await mock.examine { $0.credential = nil }
      #expect(diagnosis.failed.isEmpty, "\(diagnosis)")
      #expect(diagnosis.skipped == [.push])
      #expect(diagnosis.seen(.push).contains("--key FILE.p8 --key-id K --team-id T, --token JWT or --cert FILE"))
    }
  }
}
