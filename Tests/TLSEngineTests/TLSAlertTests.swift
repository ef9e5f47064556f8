import TestSupport
import Testing

@testable import TLSEngine

@Suite struct TLSAlertTests {
  /// OpenSSL's names of the alerts that a client receives instead of a ServerHello.
  @Test(arguments: [
    ("handshake_failure", "handshake failure"), ("internal_error", "internal error"),
    ("unrecognized_name", "unrecognized name"), ("protocol_version", "protocol version"),
    ("access_denied", "access denied"), ("bad_certificate", "bad certificate"),
    ("no_application_protocol", "no application protocol"), ("insufficient_security", "insufficient security"),
  ])
  func clientReadsTheAlert(name: String, words: String) throws {
    let fixture = try TLSFixture()
    let client = try TLSConnection(client: fixture.client, serverName: "localhost")
    #expect(try client.handshake() == .waiting)
    let code = try #require(TLSAlert.code(named: name))
    TLSAlert.record(code: code).withUnsafeBytes { client.receive($0) }
    let error = #expect(throws: TLSError.self) { try client.handshake() }
    #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
  }

  @Test func namesAndCodes() {
    #expect(TLSAlert.names.count == 28)
    #expect(Set(TLSAlert.names).count == 28)
    let codes = TLSAlert.names.compactMap { TLSAlert.code(named: $0) }
    #expect(codes == codes.sorted())
    #expect(codes.compactMap { TLSAlert.name(of: $0) } == TLSAlert.names)
    #expect(TLSAlert.code(named: "handshake_failure") == 40)
    #expect(TLSAlert.code(named: "handshake failure") == nil)
    #expect(TLSAlert.name(of: 41) == nil)
  }

  @Test(arguments: [(40, 2), (0, 1), (90, 1), (255, 2)] as [(UInt8, UInt8)])
  func alertRecord(code: UInt8, level: UInt8) {
    #expect(TLSAlert.record(code: code) == [21, 3, 3, 0, 2, level, code])
  }
}
