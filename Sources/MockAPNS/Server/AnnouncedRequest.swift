import APNSRules
import Devices
import Inbox
package import Notation

/// A request of the admin API that changes the state of all servers which share a store of the inbox.
package struct AnnouncedRequest: Sendable {
  package let method: String
  /// The path with the query.
  package let uri: String
  package let type: String?
  package let body: String
  /// The clock of the server that received it, in milliseconds since 1970.
  package let time: ServerTime

  /// Creates a request.
  package init(method: String, uri: String, type: String?, body: String, time: ServerTime) {
    (self.method, self.uri, self.type, self.body, self.time) = (method, uri, type, body, time)
  }

  /// The request as JSON.
  package var json: String {
    Self.json { writer in
      writer.member("method", method)
      writer.member("uri", uri)
      writer.member("type", type)
      writer.member("body", body)
      writer.member("time", time)
    }
  }

  /// Reads a request from JSON; nil if it is invalid.
  package init?(json text: String) {
    guard case .object(let object) = JSONValue(Array(text.utf8)[...]) else { return nil }
    func member(_ name: String) -> String? {
      guard case .text(let text) = object.members[name] else { return nil }
      return text
    }
    guard let method = member("method"), let uri = member("uri"), let body = member("body"),
      case .number(let number) = object.members["time"], let time = ServerTime(number)
    else { return nil }
    self.init(method: method, uri: uri, type: member("type"), body: body, time: time)
  }

  private static func json(_ members: (inout JSONWriter) -> Void) -> String {
    var writer = JSONWriter()
    writer.object(members)
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}

extension AnnouncedRequest {
  /// A change of the broadcast channels by a provider.
  enum ChannelChange {
    case creation(of: ChannelName, StoragePolicy)
    case removal(of: ChannelName)
  }

  init(_ change: ChannelChange, time: ServerTime) {
    switch change {
    case .creation(let channel, let storagePolicy):
      let body = Self.json { writer in
        writer.member("bundle_id", channel.bundleID)
        writer.member("environment", channel.environment.rawValue)
        writer.member("id", channel.id)
        writer.member("message_storage_policy", storagePolicy.rawValue)
      }
      self.init(method: "POST", uri: "/api/v1/channels", type: "application/json", body: body, time: time)
    case .removal(let channel):
      let query =
        "bundle_id=\(PercentEncoding.encode(channel.bundleID))&environment=\(channel.environment.rawValue)"
        + "&id=\(PercentEncoding.encode(channel.id))"
      self.init(method: "DELETE", uri: "/api/v1/channels?\(query)", type: nil, body: "", time: time)
    }
  }
}
