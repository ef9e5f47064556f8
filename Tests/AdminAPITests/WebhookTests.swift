import APNSMockTestSupport
import Logging
import MockAPNS
import NIOCore
import NIOPosix
import Testing

@testable import APNSMockAdminAPI

@Suite struct WebhookTests {
  @Test(arguments: [
    ("127.0.0.1", true), ("127.255.0.1", true), ("10.0.0.1", true), ("172.16.0.1", true), ("172.31.255.255", true),
    ("192.168.1.1", true), ("::1", true), ("fd00::1", true), ("::ffff:10.0.0.1", true), ("::ffff:192.0.2.1", false),
    ("172.15.255.255", false), ("172.32.0.1", false), ("192.169.0.1", false), ("11.0.0.1", false), ("0.0.0.0", false),
    ("::", false), ("169.254.169.254", false), ("100.64.0.1", false), ("fe80::1", false), ("fd00:ec2::254", false),
    ("fd20:ce::254", false), ("fd00::1", true), ("fe80::1%lo", false),
    ("224.0.0.1", false), ("255.255.255.255", false), ("192.0.2.1", false), ("2001:db8::1", false), ("fec0::1", false),
    ("64:ff9b::7f00:1", false), ("localhost", false), ("", false),
  ])
  func localAddresses(address: String, isLocal: Bool) {
    #expect(Webhook.isLocal(address) == isLocal)
  }

  @Test(arguments: [
    ("http://localhost", "localhost:80", "localhost", "/"), ("http://a:9000/", "a:9000", "a:9000", "/"),
    ("http://a/b?c=http://d", "a:80", "a", "/b?c=http://d"), ("http://a?b", "a:80", "a", "/?b"),
    ("https://a", "a:443", "a", "/"), ("https://a:8443/b", "a:8443", "a:8443", "/b"),
    ("http://[::1]/x", "[::1]:80", "[::1]", "/x"), ("http://[::1]:8080", "[::1]:8080", "[::1]:8080", "/"),
  ])
  func urls(text: String, endpoint: String, authority: String, path: String) throws {
    let url = try #require(WebhookURL(text))
    #expect(url.endpoint.description == endpoint)
    #expect(url.authority == authority)
    #expect(url.path == path)
    #expect(url.isSecure == text.hasPrefix("https"))
  }

  @Test(arguments: [
    "", "a", "a:80", "ftp://a", "HTTP://a", "http://", "https://", "https://u@a", "http:///x", "http://a:0",
    "http://a:99999",
    "http://a:x",
    "http://user@a", "http://user:pass@a/", "http://a#b", "http://a b", "http://a/\r\nx: y", "http://::1/", "http://ä/",
  ])
  func invalidURLs(text: String) {
    #expect(WebhookURL(text) == nil)
  }

  /// A receiver that does not respond: the oldest pushes that wait are dropped, and counted while the first one is sent.
  @Test func whatExceedsTheQueueIsCountedAtOnce() async throws {
    let accepted = Counter()
    let receiver = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        accepted.increment()
        return channel.eventLoop.makeSucceededVoidFuture()
      }
      .bind(host: "127.0.0.1", port: 0).get()
    try await TestServer.run { server in
      var settings = WebhookSettings()
      settings.url = WebhookURL("http://127.0.0.1:\(receiver.localAddress?.port ?? 0)/")
      let webhook = try #require(
        try Webhook(
          settings, of: server.state, version: "1", logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
          queueLimit: 2))
      server.recordPush(topic: "a.0")
      try await eventually("the first push is sent") { accepted.value == 1 }
      for number in 1...5 { server.recordPush(topic: "a.\(number)") }
      try await eventually("three are dropped") { webhook.counts.dropped == 3 }
      #expect(webhook.counts.delivered == 0)
      #expect(webhook.counts.failed == 0)
      await webhook.finish()
      // What still waits is given up without a connection.
      #expect(webhook.counts.dropped == 5)
      #expect(webhook.counts.failed == 1)
      #expect(accepted.value == 1)
    }
    try await receiver.close()
  }
}
