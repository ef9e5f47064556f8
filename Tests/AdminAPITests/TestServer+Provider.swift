import Foundation
import HTTPMessage
import MockAPNS

/// Pushes through the listener for providers, and waiting for conditions.
extension TestServer {
  static let deviceToken = String(repeating: "ab", count: 32)

  /// A provider with the server's own client certificate.
  var provider: PushClient {
    let folder = state.certificates.path
    return PushClient(
      endpoint: state.apnsAddresses[0], authorities: ["\(folder)/ca.pem"],
      certificate: (chain: "\(folder)/client.pem", key: "\(folder)/client-key.pem"))
  }

  /// Returns a push that is accepted.
  func goodPush(_ number: Int = 0, to deviceToken: String = TestServer.deviceToken) -> PushClient.Push {
    PushClient.Push(
      deviceToken: deviceToken, headers: [("apns-topic", "com.example.app"), ("apns-push-type", "alert")],
      payload: Array(#"{"aps":{"alert":"Hello \#(number)"}}"#.utf8))
  }

  /// Sends `count` valid pushes over one new connection.
  func send(_ count: Int = 1, to deviceToken: String = TestServer.deviceToken) async throws -> [PushClient.Outcome] {
    try await provider.send((0..<count).map { goodPush($0, to: deviceToken) })
  }

  /// Returns the statuses of `count` valid pushes: nil for a push without a response, an empty array without a
  /// connection.
  func statuses(_ count: Int = 1, to deviceToken: String = TestServer.deviceToken) async -> [Int?] {
    let outcomes = (try? await send(count, to: deviceToken)) ?? []
    return outcomes.map { outcome in
      if case .answered(let response) = outcome { response.status } else { nil }
    }
  }

  /// Waits until a condition holds; returns false if it does not within ten seconds.
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
  /// Sends a YAML body.
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
