import Foundation
import APNSMockHTTPMessage
import MockAPNS

extension MockServer {
  /// Sends an alert with the provider certificate and returns the status of the response.
  @discardableResult
  func push(
    to deviceToken: String = "ab12", headers: [(String, String)] = [], alert: String = "Hello"
  ) async throws -> Int? {
    let client = PushClient(
      endpoint: addresses[0], authorities: [settings.caPath],
      certificate: (chain: settings.certificatePath, key: settings.certificateKeyPath))
    let push = PushClient.Push(
      deviceToken: deviceToken,
      headers: [("apns-topic", settings.topic), ("apns-push-type", "alert"), ("user-agent", "a provider")]
        + headers,
      payload: Array(#"{"aps":{"alert":"\#(alert)"}}"#.utf8))
    guard case .response(let response)? = try await client.send([push]).first else { return nil }
    return response.status
  }
}

/// Returns whether a file exists.
func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }
