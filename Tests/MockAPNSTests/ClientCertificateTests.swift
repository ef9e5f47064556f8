import APNSMockRules
import Foundation
import APNSMockTLSEngine
import APNSMockTestSupport
import Testing

@testable import MockAPNS

/// The command `apns-mock certs client`: provider certificates for one's own bundle ids.
@Suite struct ClientCertificateTests {
  @Test func topicsAndEnvironments() async throws {
    let fixture = try CertificateFixture()
    let folder = try fixture.open()
    let made = try folder.makeClientCertificate(
      topics: ["com.acme.app", "com.acme.app.voip"], environments: [.production])
    #expect(made.certificate.hasPrefix(fixture.path + "/client.com.acme.app-"))
    let chain = try X509Certificate.chain(pem: String(contentsOfFile: made.certificate, encoding: .utf8))
    let certificate = PeerCertificate(chain[0])
    #expect(certificate.subjectUID == "com.acme.app")
    #expect(certificate.topics == ["com.acme.app", "com.acme.app.voip"])
    #expect(!certificate.development)
    #expect(certificate.production)
    #expect(chain[0].matches(try ES256PrivateKey(pem: String(contentsOfFile: made.key, encoding: .utf8))))
    let outcome = try await fixture.openssl(
      "verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", "ca.pem", made.certificate)
    #expect(outcome.status == 0, "\(outcome.output)")
    #expect(chain.count == 1)
    let shown = try await fixture.openssl("pkcs12", "-in", made.p12, "-passin", "pass:mock", "-nodes")
    #expect(shown.status == 0)
    #expect(shown.output.components(separatedBy: "BEGIN CERTIFICATE").count == 2)
    for path in [made.key, made.p12] {
      #expect(try fixture.mode(URL(fileURLWithPath: path).lastPathComponent) == 0o600)
    }
  }

  @Test func expiredCertificateIsOtherwiseValid() async throws {
    let fixture = try CertificateFixture()
    let made = try fixture.open().makeClientCertificate(topics: ["com.acme.app"], expired: true)
    let outcome = try await fixture.openssl("verify", "-x509_strict", "-CAfile", "ca.pem", made.certificate)
    #expect(outcome.output.contains("certificate has expired"))
    let anyTime = try await fixture.openssl(
      "verify", "-x509_strict", "-purpose", "sslclient", "-no_check_time", "-CAfile", "ca.pem", made.certificate)
    #expect(anyTime.status == 0, "\(anyTime.output)")
  }

  /// Different requests create different files, equal requests return the same files, and none overwrites the
  /// folder's own.
  @Test func filesDoNotCollide() throws {
    let fixture = try CertificateFixture()
    let folder = try fixture.open()
    let own = try fixture.contents()
    let requests: [([String], Set<PushEnvironment>, Bool)] = [
      (["key"], [.sandbox, .production], false), (["a"], [.sandbox, .production], false), (["a"], [.sandbox], false),
      (["a"], [.production], false), (["a"], [.sandbox], true), (["a", "b"], [.sandbox], false),
      (["a", "c"], [.sandbox], false), (["a/../../b"], [.sandbox], false), (["a/../../c"], [.sandbox], false),
    ]
    let made = try requests.map { try folder.makeClientCertificate(topics: $0, environments: $1, expired: $2) }
    let paths = made.flatMap { [$0.certificate, $0.key, $0.p12] }
    #expect(Set(paths).count == requests.count * 3)
    for path in paths { #expect(URL(fileURLWithPath: path).deletingLastPathComponent().path == fixture.path) }
    #expect(try folder.makeClientCertificate(topics: ["a"]) == made[1])
    let now = try fixture.contents()
    for (name, bytes) in own { #expect(now[name] == bytes, "\(name)") }
    #expect(now.count == own.count + requests.count * 3)
    #expect(try fixture.open().notices.isEmpty)
  }

  @Test(arguments: [[], [""], ["a b"], ["a", "b\n"], [String(repeating: "x", count: 256)]])
  func invalidTopicIsRejected(topics: [String]) throws {
    let fixture = try CertificateFixture()
    let folder = try fixture.open()
    let error = try #require(throws: CertificateFolderError.self) { try folder.makeClientCertificate(topics: topics) }
    #expect(error.location == "--topic")
  }
}
