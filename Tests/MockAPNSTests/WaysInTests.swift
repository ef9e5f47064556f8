import APNSMockHTTPMessage
import NIOCore
import NIOHTTP1
import Testing

@testable import MockAPNS

/// What precedes HTTP/2 on listeners other than the TLS ones.
@Suite struct WaysInTests {
  typealias Header = ProxyProtocolHeader

  // MARK: - PROXY protocol

  /// Returns the bytes of a header.
  private static func header(
    _ content: [UInt8], command: UInt8 = 0x21, family: UInt8 = 0x11, length: Int? = nil
  ) -> [UInt8] {
    let length = length ?? content.count
    return Header.signature + [command, family, UInt8(length >> 8), UInt8(length & 255)] + content
  }

  private static let ipv4: [UInt8] = [203, 0, 113, 7, 127, 0, 0, 1, 0xCF, 0x08, 0x08, 0x95]
  private static let ipv6: [UInt8] =
    [0x20, 0x01, 0x0D, 0xB8] + Array(repeating: 0, count: 11) + [9] + Array(repeating: 0, count: 15) + [1]
    + [0, 80, 0x08, 0x95]
  /// A PP2_TYPE_AUTHORITY with the value `a.b`.
  private static let tlv: [UInt8] = [2, 0, 3, 97, 46, 98]

  @Test(
    arguments: [
      (header(ipv4), "203.0.113.7:53000"), (header(ipv4 + tlv), "203.0.113.7:53000"),
      (header(ipv4, family: 0x12), "203.0.113.7:53000"), (header(ipv6, family: 0x21), "[2001:db8::9]:80"),
      (header(ipv6 + tlv, family: 0x21), "[2001:db8::9]:80"),
      (header(ipv4 + Array(repeating: 0, count: Header.maxLength - ipv4.count)), "203.0.113.7:53000"),
      // LOCAL: the balancer's own connection, whose addresses are ignored.
      (header([], command: 0x20, family: 0), nil), (header(ipv4, command: 0x20), nil),
      (header([1], command: 0x20, family: 0x11), nil),
      // Unix sockets and unspecified families.
      (header(Array(repeating: 65, count: 216), family: 0x31), nil), (header(tlv, family: 0), nil),
    ] as [([UInt8], String?)])
  func validHeader(bytes: [UInt8], client: String?) throws {
    var buffer = ByteBuffer(bytes: bytes + [22, 3, 1])
    let header = try #require(try Header(&buffer))
    #expect(header.client?.description == client)
    #expect(Array(buffer.readableBytesView) == [22, 3, 1])
    // Every beginning of it needs more bytes and consumes nothing.
    for count in bytes.indices {
      var part = ByteBuffer(bytes: bytes[..<count])
      #expect(try Header(&part) == nil)
      #expect(part.readableBytes == count)
    }
  }

  @Test(
    arguments: [
      (Array("PROXY TCP4 203.0.113.7 127.0.0.1 53000 2197\r\n".utf8), .version1), (Array("PROXY ".utf8), .version1),
      ([22, 3, 1, 0], .noSignature), (Array("POST /3/device/".utf8), .noSignature),
      ([13, 10, 13, 10, 1], .noSignature),
      (header(ipv4, command: 0x11), .version(1)), (header(ipv4, command: 0x31), .version(3)),
      (header(ipv4, command: 0x22), .command(2)),
      (header([], length: Header.maxLength + 1), .tooLong(Header.maxLength + 1)),
      (header([], length: 65535), .tooLong(65535)),
      (header(Array(ipv4.dropLast())), .tooShort(11)), (header(ipv4, family: 0x21), .tooShort(12)),
      (header([]), .tooShort(0)),
    ] as [([UInt8], Header.Problem)])
  func invalidHeader(bytes: [UInt8], problem: Header.Problem) {
    var buffer = ByteBuffer(bytes: bytes)
    #expect(throws: problem) { try Header(&buffer) }
    #expect(!problem.description.isEmpty)
  }

  // MARK: - CONNECT

  @Test(arguments: [
    "api.push.apple.com:443", "api.sandbox.push.apple.com:443", "api.development.push.apple.com:2197",
    "API.Push.Apple.com:443", "api-manage-broadcast.push.apple.com:2196", "gateway.sandbox.push.apple.com:2195",
  ])
  func servedTarget(target: String) {
    #expect(ConnectProxyHandler.refusal(.CONNECT, target) == nil)
  }

  @Test(arguments: [
    "example.com:443", "push.apple.com:443", "api.push.apple.com.example.com:443", "api.push.apple.com:80",
    "api.push.apple.com:2198", "api.push.apple.com", "localhost:443", "127.0.0.1:443", "[::1]:443", "", ":443",
    "https://api.push.apple.com:443/", "api.push.apple.com:443:443",
  ])
  func refusedTarget(target: String) {
    #expect(ConnectProxyHandler.refusal(.CONNECT, target)?.status == .forbidden)
  }

  @Test(arguments: [HTTPMethod.GET, .POST, .OPTIONS])
  func methodsOtherThanCONNECT(method: HTTPMethod) {
    #expect(ConnectProxyHandler.refusal(method, "http://api.push.apple.com/")?.status == .methodNotAllowed)
  }

  // MARK: - HTTP/1.1

  private func fields(_ uri: String, _ headers: HTTPHeaders) -> [String] {
    let list = HeaderList(HTTPRequestHead(version: .http1_1, method: .POST, uri: uri, headers: headers))
    var fields: [String] = []
    list.forEachField { name, value in fields.append("\(list.string(name)) \(list.string(value))") }
    return fields
  }

  @Test(arguments: [
    ("/3/device/ab", "/3/device/ab", "localhost:2198"),
    ("http://other:1/3/device/ab?x", "/3/device/ab?x", "other:1"), ("http://localhost", "/", "localhost"),
    ("*", "*", "localhost:2198"),
  ])
  func targetOfRequest(uri: String, path: String, authority: String) {
    #expect(
      fields(uri, ["Host": "localhost:2198"]) == [
        ":method POST", ":scheme http", ":path \(path)", ":authority \(authority)",
      ])
  }

  @Test func fieldsOfRequest() {
    let headers: HTTPHeaders = [
      "Apns-Topic": "com.example.app", "Connection": "keep-alive, X-Hop", "X-Hop": "1", "Keep-Alive": "timeout=5",
      "Transfer-Encoding": "chunked", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABkAAQAoAAAAAIAAAAA", "TE": "trailers",
      "Proxy-Connection": "close", "Expect": "100-continue", "content-length": "2",
    ]
    #expect(
      fields("/", headers).dropFirst(3) == [":authority localhost", "apns-topic com.example.app", "content-length 2"])
  }
}
