/// A request that shows one fact of Protocol.md and delivers nothing, with the answer that follows from the rules.
///
/// One list with three uses: `apns-mock compare` sends the probes, the tests check that the rules give the answers, and
/// section 14 of Protocol.md counts them.
package struct ProtocolProbe: Sendable {
  /// A fact of Protocol.md.
  package struct Fact: Sendable, Hashable {
    /// The section of Protocol.md with the evidence.
    package let section: String
    /// The fact, in Markdown.
    package let text: String
  }

  /// What a probe needs beyond a provider token.
  package enum Need: String, Sendable, CaseIterable {
    case nothing
    /// Another provider token on a connection of its own: too many of them block a team for a time.
    case providerTokens = "provider-tokens"
    /// The token of a device, which gets a background push.
    case device
  }

  /// The name, unique in the list, such as `apns-id/short`.
  package let name: String
  package let fact: Fact
  package let need: Need
  /// The header fields with the pseudo-header fields, and `Placeholder`s for what differs between users.
  package var fields: [(name: String, value: String)]
  package let body: [UInt8]
  /// The status of the answer, and its reason; nil without one.
  package let status: Int
  package let reason: Reason?

  /// The texts that replace values of the user, in requests and in evidence.
  package enum Placeholder {
    package static let topic = "<topic>"
    package static let providerToken = "<provider-token>"
    package static let deviceToken = "<device-token>"
  }

  /// The device token of probes: no device has it.
  package static let zeros = String(repeating: "0", count: 64)

  /// Returns the header fields for a user.
  package func fields(topic: String, providerToken: String, deviceToken: String?) -> [(String, String)] {
    fields.map { name, value in
      (
        name,
        value.replacing(Placeholder.topic, with: topic).replacing(Placeholder.providerToken, with: providerToken)
          .replacing(Placeholder.deviceToken, with: deviceToken ?? Self.zeros)
      )
    }
  }
}

/// The parts of a request that is changed to become a probe.
struct ProbeRequest {
  var fields: [(name: String, value: String)] = [
    (":method", "POST"), (":scheme", "https"), (":path", "/3/device/\(ProtocolProbe.zeros)"), (":authority", ""),
    ("authorization", "bearer \(ProtocolProbe.Placeholder.providerToken)"),
    ("apns-topic", ProtocolProbe.Placeholder.topic),
    ("apns-push-type", "alert"),
  ]
  var body = Array(#"{"aps":{"alert":"probe"}}"#.utf8)

  /// The value of the first field with a name; nil removes all of them.
  subscript(name: String) -> String? {
    get { fields.first { $0.name == name }?.value }
    set {
      guard let newValue else { return fields.removeAll { $0.name == name } }
      if let index = fields.firstIndex(where: { $0.name == name }) {
        fields[index].value = newValue
      } else {
        fields.append((name, newValue))
      }
    }
  }

  /// Sets the device token in the path.
  mutating func setDeviceToken(_ token: String) { self[":path"] = "/3/device/\(token)" }

  /// Sets a body of exactly this many bytes.
  mutating func setBody(byteCount: Int) {
    let (head, tail) = (Array(#"{"aps":{"alert":""#.utf8), Array(#""}}"#.utf8))
    body = head + Array(repeating: UInt8(ascii: "x"), count: max(0, byteCount - head.count - tail.count)) + tail
  }
}
