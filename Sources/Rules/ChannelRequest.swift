internal import APNSMockHTTPMessage
internal import APNSMockNotation

/// An accepted broadcast or request of channel management (Protocol.md, section 10).
package final class ChannelRequest: Sendable {
  /// What a request does.
  package enum Operation: Hashable, Sendable {
    /// `POST /4/broadcasts/apps/{bundle id}`
    case broadcast
    /// `POST /1/apps/{bundle id}/channels`
    case create
    /// `GET /1/apps/{bundle id}/channels`
    case read
    /// `DELETE /1/apps/{bundle id}/channels`
    case delete
    /// `GET /1/apps/{bundle id}/all-channels`
    case list

    /// The status of the response to an accepted request.
    package var status: Int {
      switch self {
      case .create: 201
      case .delete: 204
      case .broadcast, .read, .list: 200
      }
    }

    /// Whether the request names a channel in `apns-channel-id`.
    var namesChannel: Bool { self != .create && self != .list }
  }

  /// What the request does.
  package let operation: Operation
  /// The bundle id in the path.
  package let bundleID: String
  /// `apns-channel-id`; nil for `create` and `list`, which ignore it.
  package let channelID: String?
  /// The storage policy of the new or the named channel; nil for `list`.
  package let storagePolicy: StoragePolicy?
  /// `apns-expiration` of a broadcast, in seconds since 1970; nil for channel management.
  package let expiration: Int64?

  init(
    _ operation: Operation, bundleID: String, channelID: String? = nil, storagePolicy: StoragePolicy? = nil,
    expiration: Int64? = nil
  ) {
    self.operation = operation
    self.bundleID = bundleID
    self.channelID = channelID
    self.storagePolicy = storagePolicy
    self.expiration = expiration
  }
}

/// The message storage policy of a channel, which is fixed when the channel is created; the raw values are those of
/// `message-storage-policy` (Protocol.md, section 10.1).
package enum StoragePolicy: Int, CaseIterable, Sendable {
  /// Broadcasts reach devices that are online.
  case none = 0
  /// The newest broadcast is stored for devices that are offline.
  case newest = 1
}

/// The syntax of channel ids.
package enum ChannelID {
  /// The maximum length in characters. Apple does not publish it (our inference).
  package static let limit = 256

  /// Returns whether `bytes` are standard base64 with padding, 1 to 256 characters.
  package static func isWellFormed(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let padding = bytes.reversed().prefix { $0 == UInt8(ascii: "=") }.count
    guard (1...limit).contains(bytes.count), bytes.count.isMultiple(of: 4), padding <= 2 else { return false }
    return bytes.dropLast(padding).allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "/"): true
      default: false
      }
    }
  }

  /// Returns whether `text` can be the id of a channel.
  package static func isWellFormed(_ text: String) -> Bool {
    return text.withBytes { isWellFormed($0) }
  }
}

/// The path of a broadcast or of channel management.
struct ChannelRequestPath {
  /// The bundle id, in the header list.
  let bundleID: ByteRange
  /// Whether it is the path of all channels of an app.
  let isList: Bool

  /// Parses `/4/broadcasts/apps/{bundle id}`, `/1/apps/{bundle id}/channels` or `/1/apps/{bundle id}/all-channels`; nil
  /// for any other path.
  init?(_ range: ByteRange, in packed: UnsafeRawBufferPointer) {
    let path = packed[range]
    let prefix: StaticString
    let suffix: StaticString
    if path.hasPrefix("/4/broadcasts/apps/") {
      (prefix, suffix) = ("/4/broadcasts/apps/", "")
    } else if path.hasPrefix("/1/apps/") {
      (prefix, suffix) = ("/1/apps/", path.hasSuffix("/all-channels") ? "/all-channels" : "/channels")
    } else {
      return nil
    }
    let count = path.count - prefix.utf8CodeUnitCount - suffix.utf8CodeUnitCount
    guard path.hasSuffix(suffix), count > 0 else { return nil }
    let start = prefix.utf8CodeUnitCount
    guard !path.part(start..<start + count).contains(UInt8(ascii: "/")) else { return nil }
    bundleID = ByteRange(offset: Int(range.offset) + start, count: count)
    isList = suffix.utf8CodeUnitCount == 13
  }
}
