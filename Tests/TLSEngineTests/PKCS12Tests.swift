import Foundation
import APNSMockTestSupport
import Testing

@testable import APNSMockTLSEngine

@Suite struct PKCS12Tests {
  /// Encrypted in a form that openssl opens without its legacy provider and that old key chains read.
  @Test func openSSLOpensTheBundle() async throws {
    let tool = try OpenSSLTool()
    let samples = try SampleCertificates()
    let bytes = try PKCS12.encode(samples.provider, name: "a provider", password: "mock")
    try tool.write("client.p12", bytes)
    let shown = try await tool.run("pkcs12", "-in", "client.p12", "-passin", "pass:mock", "-info", "-nodes")
    #expect(shown.status == 0, "\(shown.output)")
    #expect(shown.output.contains("MAC: sha1, Iteration 2048"))
    #expect(shown.output.contains("PKCS7 Encrypted data: pbeWithSHA1And3-KeyTripleDES-CBC"))
    #expect(shown.output.contains("Shrouded Keybag: pbeWithSHA1And3-KeyTripleDES-CBC"))
    #expect(shown.output.contains("friendlyName: a provider"))
    #expect(shown.output.contains(try samples.provider.certificate.pem))
    // One key and one certificate: libraries such as sideshow/apns2 accept exactly two entries.
    #expect(shown.output.components(separatedBy: "-----BEGIN ").count - 1 == 2)
    #expect(!PKCS12.containsFurtherCertificates(bytes, password: "mock"))
    #expect(shown.output.contains(try samples.provider.key.pem))
    let wrong = try await tool.run("pkcs12", "-in", "client.p12", "-passin", "pass:other", "-nodes")
    #expect(wrong.status != 0)
  }

  @Test func furtherCertificatesAreFoundWithTheRightPasswordOnly() async throws {
    let tool = try OpenSSLTool()
    let samples = try SampleCertificates()
    try samples.write(to: tool)
    try tool.write("client-key.pem", try samples.provider.key.pem)
    let made = try await tool.run(
      "pkcs12", "-export", "-in", "client.pem", "-inkey", "client-key.pem", "-certfile", "ca.pem", "-passout",
      "pass:mock", "-out", "both.p12")
    #expect(made.status == 0, "\(made.output)")
    let bytes = try tool.bytes("both.p12")
    #expect(PKCS12.isWhole(bytes))
    #expect(PKCS12.containsFurtherCertificates(bytes, password: "mock"))
    #expect(!PKCS12.containsFurtherCertificates(bytes, password: "other"))
    #expect(!PKCS12.containsFurtherCertificates([], password: "mock"))
  }
}
