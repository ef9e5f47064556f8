import Foundation
import HTTPMessage
import MockAPNS

/// Pushes through the front door, and what comes of faults with time.
extension TestServer {
  static let deviceToken = String(repeating: "ab", count: 32)

  /// A provider with the server's own client certificate.
  var provider: PushClient {
    let folder = state.certificates.path
    return PushClient(
      endpoint: state.apnsAddresses[0], authorities: ["\(folder)/ca.pem"],
      certificate: (chain: "\(folder)/client.pem", key: "\(folder)/client-key.pem"))
  }

  /// A push that is accepted as it stands.
  func goodPush(_ number: Int = 0, to deviceToken: String = TestServer.deviceToken) -> PushClient.Push {
    PushClient.Push(
      deviceToken: deviceToken, headers: [("apns-topic", "com.example.app"), ("apns-push-type", "alert")],
      payload: Array(#"{"aps":{"alert":"Hello \#(number)"}}"#.utf8))
  }

  /// Sends so many good pushes over one connection of their own.
  func send(_ count: Int = 1, to deviceToken: String = TestServer.deviceToken) async throws -> [PushClient.Outcome] {
    try await provider.send((0..<count).map { goodPush($0, to: deviceToken) })
  }

  /// The statuses of so many good pushes; nil for one that got no answer, none at all without a connection.
  func statuses(_ count: Int = 1, to deviceToken: String = TestServer.deviceToken) async -> [Int?] {
    let outcomes = (try? await send(count, to: deviceToken)) ?? []
    return outcomes.map { outcome in
      if case .answered(let response) = outcome { response.status } else { nil }
    }
  }

  /// Waits until something holds; false if it does not within ten seconds.
  static func eventually(_ condition: () async -> Bool) async -> Bool {
    let end = ContinuousClock.now + .seconds(10)
    while ContinuousClock.now < end {
      if await condition() { return true }
      try? await Task.sleep(for: .milliseconds(10))
    }
    return await condition()
  }
}

extension RawClient {
  /// Sends a body of YAML.
  func sendYAML(_ method: String, _ path: String, _ text: String) async -> Answer {
    await request(method, path, [("content-type", "application/yaml")], body: text)
  }
}

extension RawClient.Answer {
  /// The objects under `items`.
  var items: [[String: Any]] { object["items"] as? [[String: Any]] ?? [] }
  /// The objects under `problems`.
  var problems: [[String: Any]] { object["problems"] as? [[String: Any]] ?? [] }
}
