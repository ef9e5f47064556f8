import APNSMockAdminAPI
import ArgumentParser
import APNSMockInbox
import MockAPNS
import NIOCore
import NIOPosix
import APNSMockTLSEngine
import APNSMockTestSupport
import Testing

@testable import APNSMockClientCommands

/// Common connection problems, each reproduced, and the remedy that `doctor` names.
@Suite struct DoctorConnectionTests {
  /// Returns the diagnosis of `doctor` for an endpoint, as a client that trusts `authority`.
  private static func examine(
    _ endpoint: MockServer.Endpoint, as name: String = "localhost", trusting authority: String? = nil,
    known: ServerDetails? = nil, timeout: Duration = .seconds(60)
  ) async throws -> DiagnosisReport {
    var diagnosis = Diagnosis(
      endpoint: endpoint, serverName: name, authority: authority, topic: "com.example.app", known: known,
      timeout: timeout)
    try await diagnosis.run()
    return DiagnosisReport(results: diagnosis.results)
  }

  @Test func allChecksPass() async throws {
    try await TestServer.run { mock in
      let diagnosis = try await mock.examine()
      #expect(diagnosis.results.map(\.check) == DoctorCheck.allCases)
      #expect(diagnosis.results.allSatisfy { $0.status == .passed }, "\(diagnosis)")
      #expect(try mock.state.inbox.record(seq: 1)?.accepted == true)
    }
  }

  @Test func unknownHostName() async throws {
    let diagnosis = try await Self.examine(
      MockServer.Endpoint(host: "nowhere.invalid", port: 2197), as: "nowhere.invalid")
    #expect(diagnosis.failed == [.resolve])
    #expect(diagnosis.repair(.resolve).contains("hosts file (127.0.0.1 nowhere.invalid)"))
    #expect(diagnosis.repair(.resolve).contains("--apns 127.0.0.1:2197 --server-name nowhere.invalid"))
    #expect(diagnosis.skipped == Array(DoctorCheck.allCases.dropFirst()))
  }

  /// Returns a port on which nothing listens: it was free a moment ago.
  private static func freePort() async throws -> Int {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let port = channel.localAddress?.port ?? 0
    try await channel.close()
    return port
  }

  @Test func connectionRefused() async throws {
    let endpoint = MockServer.Endpoint(host: "127.0.0.1", port: try await Self.freePort())
    let diagnosis = try await Self.examine(endpoint)
    #expect(diagnosis.failed == [.connect])
    #expect(diagnosis.seen(.connect) == "\(endpoint): connection refused")
    #expect(diagnosis.repair(.connect).contains("start apns-mock serve --apns \(endpoint)"))
    #expect(diagnosis.repair(.connect).contains("in a container, it must listen on 0.0.0.0:\(endpoint.port)"))
  }

  @Test func serverOnAnotherPort() async throws {
    try await TestServer.run { mock in
      let endpoint = MockServer.Endpoint(host: "127.0.0.1", port: try await Self.freePort())
      let diagnosis = try await Self.examine(endpoint, known: mock.known())
      #expect(diagnosis.failed == [.connect])
      #expect(
        diagnosis.repair(.connect).contains("on \(mock.admin.address) listens on \(mock.apns): connect there (--apns)"))
    }
  }

  /// A listener whose queue is full accepts no further connections and does not respond, as a firewall does.
  @Test func noRoute() async throws {
    let full = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(ChannelOptions.backlog, value: 0)
      .serverChannelOption(ChannelOptions.autoRead, value: false)
      .bind(host: "127.0.0.1", port: 0).get()
    let endpoint = MockServer.Endpoint(host: "127.0.0.1", port: full.localAddress?.port ?? 0)
    var waiting: [any Channel] = []
    for _ in 0..<4 {
      let channel = try? await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .connectTimeout(.milliseconds(100)).connect(host: endpoint.host, port: endpoint.port).get()
      if let channel { waiting.append(channel) }
    }
    let diagnosis = try await Self.examine(endpoint, timeout: .milliseconds(300))
    #expect(diagnosis.failed == [.connect], "\(diagnosis)")
    #expect(diagnosis.repair(.connect).contains("there is no route"))
    #expect(diagnosis.repair(.connect).contains("0.0.0.0:\(endpoint.port)"))
    for channel in waiting { try await channel.close() }
    try await full.close()
  }

  @Test func adminListenerInsteadOfAPNsListener() async throws {
    try await TestServer.run { mock in
      let diagnosis = try await mock.examine { $0.endpoint = mock.admin.address }
      #expect(diagnosis.failed == [.tls])
      #expect(diagnosis.seen(.tls).contains("plain HTTP: this is the admin listener of apns-mock"))
      #expect(diagnosis.repair(.tls) == "connect to \(mock.apns) (--apns)")
    }
  }

  /// Plain-text responses, and the parts of the diagnosis that describe them.
  @Test(arguments: [
    ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "plain HTTP", "APNs requires TLS"),
    ("\0\0\u{6}\u{4}\0\0\0\0\0\0\u{3}\0\0\0\u{64}", "HTTP/2 without TLS", "APNs requires TLS"),
    ("SSH-2.0-OpenSSH_9.6\r\n", "not TLS and begins with 53 53 48", "another service uses this port"),
  ])
  func plainText(answer: String, seen: String, repair: String) async throws {
    try await ForeignServer.run(.plain(Array(answer.utf8))) { endpoint in
      let diagnosis = try await Self.examine(endpoint)
      #expect(diagnosis.failed == [.tls])
      #expect(diagnosis.seen(.tls).contains(seen))
      #expect(diagnosis.repair(.tls).contains(repair))
      #expect(diagnosis.skipped == Array(DoctorCheck.allCases.dropFirst(3)))
    }
  }

  @Test func silentPort() async throws {
    // Connecting must succeed before the timeout, which the silent server then exhausts: long enough for a busy
    // machine.
    for (manner, seen) in [(ForeignServer.Behavior.closing, "accepts and closes"), (.silent, "without a response")] {
      try await ForeignServer.run(manner) { endpoint in
        let diagnosis = try await Self.examine(endpoint, timeout: .seconds(3))
        #expect(diagnosis.failed == [.tls])
        #expect(diagnosis.seen(.tls).contains(seen), "\(diagnosis)")
        #expect(diagnosis.repair(.tls).contains("no TLS 1.2 or 1.3 server uses this port"))
        #expect(diagnosis.repair(.tls).contains("--apns 0.0.0.0:PORT"))
      }
    }
  }

  @Test func noCommonTLSVersion() async throws {
    let certificate = try ServerCertificate()
    let flags = [
      "-cert", certificate.chain, "-key", certificate.key, "-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256",
    ]
    try await OpenSSLTool.serve(flags) { endpoint in
      let diagnosis = try await Self.examine(endpoint, trusting: certificate.authority)
      #expect(diagnosis.failed == [.tls], "\(diagnosis)")
      #expect(diagnosis.seen(.tls).contains("handshake failure"))
      #expect(diagnosis.repair(.tls).contains("TLS 1.2 or 1.3"))
    }
  }
}
