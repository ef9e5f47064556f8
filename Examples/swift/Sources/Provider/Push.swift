import Foundation

/// A notification for one device. Every attempt to send it has the same `id`.
package struct Push: Sendable {
  package let id = UUID()
  package let deviceToken: String
  /// The payload in JSON.
  package let payload: String
  package let topic: String
  package let pushType: String

  package init(deviceToken: String, payload: String, topic: String, pushType: String = "alert") {
    self.deviceToken = deviceToken
    self.payload = payload
    self.topic = topic
    self.pushType = pushType
  }
}

/// The last response to a push.
package struct Delivery: Sendable {
  package let push: Push
  /// The number of attempts made.
  package var attempts = 0
  /// The HTTP status; nil if the last attempt got no response.
  package var status: Int?
  /// The reason of a rejection, such as `Unregistered`.
  package var reason: String?
}
