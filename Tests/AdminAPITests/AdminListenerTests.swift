import Dispatch
import Foundation
import MockAPNS
import NIOCore
import NIOPosix
import APNSMockTestSupport
import Testing

@testable import APNSMockAdminAPI

/// How the admin listener accepts connections and divides them among its event loops.
@Suite struct AdminListenerTests {
  /// Runs `body` while the event loop of all connections but health checks does nothing.
  private func whileEventLoopIsBusy(_ body: () async throws -> Void) async rethrows {
    let isDone = DispatchSemaphore(value: 0)
    AdminListener.eventLoops.next().execute { isDone.wait() }
    defer { isDone.signal() }
    try await body()
  }

  @Test(arguments: ["GET /livez", "HEAD /livez", "GET /readyz", "HEAD /readyz?verbose"])
  func healthChecksDoNotWaitForOtherConnections(beginning: String) async throws {
    try await TestServer.run { server in
      await whileEventLoopIsBusy {
        // More connections than the event loop takes at once.
        let others = (0..<200).map { _ in
          server.client.open("GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        }
        let response = await server.client.exchange(
          "\(beginning) HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        #expect(response.status == 200)
        for other in others { other.close() }
      }
    }
  }

  @Test func allWaitingConnectionsAreServed() async throws {
    try await TestServer.run { server in
      var clients: [RawConnection] = []
      await whileEventLoopIsBusy {
        for _ in 0..<100 {
          clients.append(server.client.open("GET /ca.pem HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
        }
      }
      for client in clients {
        let response = await onOwnThread { client.readToEnd() }
        #expect(response.map { String(decoding: $0.prefix(15), as: UTF8.self) } == "HTTP/1.1 200 OK")
        client.close()
      }
    }
  }

  /// Beginnings that arrive in pieces, or later than a health check is waited for.
  @Test(arguments: [("", 0.7), ("G", 0.1), ("GET /live", 0.1), ("GET /livez HTTP/1.1\r\n", 0.7), ("GET /", 0.7)])
  func slowBeginningsAreServed(beginning: String, pause: TimeInterval) async throws {
    try await TestServer.run { server in
      let whole = "GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
      let client = server.client.open(beginning)
      try await Task.sleep(for: .seconds(pause))
      client.write(String(whole.dropFirst(beginning.count)))
      let response = await onOwnThread { client.readToEnd() }
      #expect(response.map { String(decoding: $0.prefix(15), as: UTF8.self) } == "HTTP/1.1 200 OK")
      client.close()
    }
  }

  @Test func theAddressIsFreeOnceTheListenerHasStopped() async throws {
    try await TestServer.run { server in
      var address = MockServer.Endpoint(host: "127.0.0.1", port: 0)
      for _ in 0..<3 {
        let admin = try await AdminServer.start(server.state, at: address, version: "1")
        address = admin.address
        let client = RawClient(port: address.port)
        let silent = client.open("")
        #expect(await client.get("/livez").status == 200)
        await admin.stop()
        #expect(await onOwnThread { silent.readToEnd() } == [])
        silent.close()
      }
    }
  }

  @Test func responsesHaveADate() async throws {
    try await TestServer.run { server in
      let date = await server.client.get("/api/v1/status").headers["date"] ?? ""
      let format = DateFormatter()
      format.locale = Locale(identifier: "en_US_POSIX")
      format.timeZone = TimeZone(identifier: "GMT")
      format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
      #expect(abs((format.date(from: date) ?? .distantPast).timeIntervalSinceNow) < 60)
    }
  }
}
