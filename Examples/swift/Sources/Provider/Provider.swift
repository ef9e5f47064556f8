import AsyncHTTPClient
import Crypto
import Foundation
import NIOSSL

/// Sends a queue of pushes to APNs, retries what may be retried, and removes dead devices.
package actor Provider {
  package struct Settings: Sendable {
    /// The URL of APNs, without a path.
    package var url: String
    /// The provider key: the content of the `.p8` file.
    package var key: String
    package var keyID: String
    package var teamID: String
    /// The path of a CA certificate to trust; nil for the system's CAs.
    package var caPath: String?
    /// The maximum number of concurrent pushes.
    package var concurrency = 4
    /// The maximum number of attempts per push.
    package var attempts = 5
    /// The delay before the first retry; each further delay is twice as long.
    package var firstDelay = Duration.seconds(1)
    /// The clock that provider tokens are dated with.
    package var now: @Sendable () -> Date = { Date() }

    package init(url: String, key: String, keyID: String, teamID: String, caPath: String? = nil) {
      self.url = url
      self.key = key
      self.keyID = keyID
      self.teamID = teamID
      self.caPath = caPath
    }
  }

  /// A provider token with the HTTP client that sends it. APNs rejects every push on a connection whose provider token
  /// has expired, so a new token gets new connections.
  private struct Session {
    let token: String
    let signedAt: Date
    let client: HTTPClient
  }

  /// The body of a rejection. The timestamp of a 410 is in milliseconds since 1970.
  private struct Rejection: Decodable {
    var reason: String?
    var timestamp: Double?
  }

  /// APNs accepts a provider token for an hour.
  private static let tokenLifetime: TimeInterval = 50 * 60
  private static let retriedStatuses: Set = [429, 500, 503]
  /// The reasons for which a device token will not become valid again.
  private static let deadReasons: Set = ["BadDeviceToken", "Unregistered", "ExpiredToken"]

  /// The registered device tokens, with the time of their registration.
  package private(set) var devices: [String: Date]

  private let settings: Settings
  private let key: P256.Signing.PrivateKey
  private var queue: [Push] = []
  private var session: Session?
  private var retired: [HTTPClient] = []

  /// - Throws: An error if the provider key is invalid.
  package init(_ settings: Settings, devices: [String: Date] = [:]) throws {
    self.settings = settings
    self.devices = devices
    key = try P256.Signing.PrivateKey(pemRepresentation: settings.key)
  }

  /// Closes all connections.
  package func close() async throws {
    for client in retired + (session.map { [$0.client] } ?? []) { try await client.shutdown() }
    (retired, session) = ([], nil)
  }

  /// Adds a push to the queue.
  package func enqueue(_ push: Push) { queue.append(push) }

  /// Sends all pushes of the queue.
  ///
  /// - Throws: `CancellationError` if the task was cancelled.
  package func sendQueue() async throws -> [Delivery] {
    try await withThrowingTaskGroup(of: [Delivery].self) { group in
      for _ in 0..<settings.concurrency {
        group.addTask {
          var deliveries: [Delivery] = []
          while let push = await self.dequeue() { deliveries.append(try await self.send(push)) }
          return deliveries
        }
      }
      var deliveries: [Delivery] = []
      for try await part in group { deliveries += part }
      return deliveries
    }
  }

  private func dequeue() -> Push? { queue.isEmpty ? nil : queue.removeFirst() }

  /// Sends a push until it is accepted, permanently rejected, or out of attempts.
  private func send(_ push: Push) async throws -> Delivery {
    var delivery = Delivery(push: push)
    while delivery.attempts < settings.attempts {
      if delivery.attempts > 0, delivery.reason != "ExpiredProviderToken" {
        let factor = Double(1 << (delivery.attempts - 1)) * .random(in: 1...1.2)
        try await Task.sleep(for: settings.firstDelay * factor)
      }
      delivery.attempts += 1
      (delivery.status, delivery.reason) = (nil, nil)
      let session = try currentSession()
      guard let (status, rejection) = try? await attempt(push, session) else {
        try Task.checkCancellation()
        continue
      }
      (delivery.status, delivery.reason) = (status, rejection.reason)
      if let reason = rejection.reason, Self.deadReasons.contains(reason) {
        removeDevice(push.deviceToken, deadSince: rejection.timestamp)
      }
      if rejection.reason == "ExpiredProviderToken" {
        retire(session)
      } else if !Self.retriedStatuses.contains(status) {
        break
      }
    }
    return delivery
  }

  /// Makes one attempt.
  ///
  /// - Throws: An error if there was no response, for example because the connection was lost.
  private func attempt(_ push: Push, _ session: Session) async throws -> (Int, Rejection) {
    var request = HTTPClientRequest(url: "\(settings.url)/3/device/\(push.deviceToken)")
    request.method = .POST
    request.headers.add(contentsOf: [
      "authorization": "bearer \(session.token)", "apns-id": push.id.uuidString,
      "apns-topic": push.topic, "apns-push-type": push.pushType,
    ])
    request.body = .bytes(Array(push.payload.utf8))
    let response = try await session.client.execute(request, timeout: .seconds(10))
    let body = try await response.body.collect(upTo: 1 << 16)
    let rejection = try? JSONDecoder().decode(Rejection.self, from: Data(body.readableBytesView))
    return (Int(response.status.code), rejection ?? Rejection())
  }

  /// Returns the current provider token and its client. The token is signed again before it expires.
  private func currentSession() throws -> Session {
    let now = settings.now()
    if let session {
      guard now.timeIntervalSince(session.signedAt) > Self.tokenLifetime else { return session }
      retire(session)
    }
    var tls = TLSConfiguration.makeClientConfiguration()
    if let path = settings.caPath { tls.trustRoots = .file(path) }
    let new = Session(
      token: try signToken(at: now), signedAt: now,
      client: HTTPClient(configuration: HTTPClient.Configuration(tlsConfiguration: tls)))
    session = new
    return new
  }

  /// Stops using a session; other pushes may have done so already. Its client is shut down by `close()`, because
  /// pushes may wait for responses.
  private func retire(_ old: Session) {
    guard session?.client === old.client else { return }
    retired.append(old.client)
    session = nil
  }

  private func signToken(at now: Date) throws -> String {
    let header = #"{"alg":"ES256","kid":"\#(settings.keyID)"}"#
    let claims = #"{"iss":"\#(settings.teamID)","iat":\#(Int(now.timeIntervalSince1970))}"#
    let message = "\(Self.base64URL(Data(header.utf8))).\(Self.base64URL(Data(claims.utf8)))"
    return "\(message).\(Self.base64URL(try key.signature(for: Data(message.utf8)).rawRepresentation))"
  }

  private static func base64URL(_ data: Data) -> String {
    data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// Removes a dead device token, unless the app has registered it again since `timestamp`, in milliseconds.
  private func removeDevice(_ token: String, deadSince timestamp: Double?) {
    guard let registered = devices[token] else { return }
    if let timestamp, registered.timeIntervalSince1970 * 1000 > timestamp { return }
    devices[token] = nil
  }
}
