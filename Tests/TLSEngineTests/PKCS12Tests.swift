import Testing

@testable import TLSEngine

@Suite struct PKCS12Tests {
  /// Without the provider of legacy algorithms, and in the form old key chains read.
  @Test func theOpenSSLProgramOpensIt() throws {
    let tool = try OpenSSLTool()
    defer { tool.remove() }
    let samples = try SampleCertificates()
    let bytes = try PKCS12.encode(
      samples.provider, authority: samples.authority.certificate, name: "a provider", password: "mock")
    try tool.write("client.p12", bytes)
    let shown = try tool.run("pkcs12", "-in", "client.p12", "-passin", "pass:mock", "-info", "-nodes")
    #expect(shown.status == 0, "\(shown.output)")
    #expect(shown.output.contains("MAC: sha1, Iteration 2048"))
    #expect(shown.output.contains("PKCS7 Encrypted data: pbeWithSHA1And3-KeyTripleDES-CBC"))
    #expect(shown.output.contains("Shrouded Keybag: pbeWithSHA1And3-KeyTripleDES-CBC"))
    #expect(shown.output.contains("friendlyName: a provider"))
    #expect(shown.output.contains(try samples.provider.certificate.pem))
    #expect(shown.output.contains(try samples.authority.certificate.pem))
    #expect(shown.output.contains(try samples.provider.key.pem))
    let wrong = try tool.run("pkcs12", "-in", "client.p12", "-passin", "pass:other", "-nodes")
    #expect(wrong.status != 0)
  }
}
