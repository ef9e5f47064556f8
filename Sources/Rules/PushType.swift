internal import APNSMockHTTPMessage
internal import APNSMockNotation

/// The value of `apns-push-type`, which determines the topic's suffix, the payload limit and the documented
/// priorities. Source: Protocol.md, sections 5 (documented) and 6.1.
package enum PushType: UInt8, CaseIterable, Sendable {
  /// The eleven documented types.
  case alert, background, complication, controls, fileprovider, liveactivity, location, mdm, pushtotalk, voip, widgets

  /// The value on the wire.
  package var text: String { row.text.description }

  /// The suffix after the bundle id in the topic; empty if the bundle id is the topic.
  package var topicSuffix: String { row.suffix.description }

  /// The maximum body size in bytes, inclusive (Protocol.md, section 6.1).
  package var payloadLimit: Int { self == .voip ? 5120 : Self.usualPayloadLimit }

  /// The limit for all types but VoIP, and for a push with an unknown type.
  package static let usualPayloadLimit = 4096

  /// Creates the type with this value; upper case is not accepted.
  package init?(_ bytes: UnsafeRawBufferPointer) {
    for type in Self.allCases where bytes.equals(type.row.text) {
      self = type
      return
    }
    return nil
  }

  /// Creates the type whose suffix `topic` has after a bundle id; nil if there is none.
  package init?(suffixOf topic: UnsafeRawBufferPointer) {
    guard let ending = topic.ending else { return nil }
    for candidate in Self.suffixed where candidate.ending == ending {
      let suffix = candidate.type.row.suffix
      guard topic.count > suffix.utf8CodeUnitCount, topic.hasSuffix(suffix) else { continue }
      self = candidate.type
      return
    }
    return nil
  }

  /// Creates the type whose suffix `topic` has after a bundle id; nil if there is none.
  package init?(suffixOf topic: String) {
    guard let type = topic.withBytes({ PushType(suffixOf: $0) }) else { return nil }
    self = type
  }

  /// Returns the bundle id of a topic: the topic without the suffix of a push type.
  package static func bundleID(of topic: String) -> String {
    PushType(suffixOf: topic).map { String(topic.dropLast($0.topicSuffix.count)) } ?? topic
  }

  /// Whether Apple documents this priority for the type; enforced only in `strict`. If the documentation names
  /// none, all three are allowed.
  ///
  /// Source: Protocol.md, section 5. `background`: 5 only. `liveactivity`: 10 or 5 ("Starting and updating Live
  /// Activities with ActivityKit push notifications"). `location`: 10 for immediate delivery, else 5 ("Creating a
  /// location push service extension"). All three are documented; no rejection by APNs was published.
  func documents(priority: UInt8) -> Bool {
    switch self {
    case .background: priority == 5
    case .liveactivity, .location: priority != 1
    default: true
    }
  }

  /// Whether the topic of this type is more than the bundle id.
  var hasTopicSuffix: Bool { row.suffix.utf8CodeUnitCount > 0 }

  /// The types with a suffix, and the suffix's last four bytes, which suffice to rule out most topics.
  private static let suffixed = allCases.compactMap { type in
    let suffix = type.row.suffix
    return UnsafeRawBufferPointer(start: suffix.utf8Start, count: suffix.utf8CodeUnitCount).ending
      .map { (type: type, ending: $0) }
  }

  /// The value of `apns-push-type`, and the suffix of the topic.
  var row: (text: StaticString, suffix: StaticString) {
    switch self {
    case .alert: ("alert", "")
    case .background: ("background", "")
    case .complication: ("complication", ".complication")
    case .controls: ("controls", ".push-type.controls")
    case .fileprovider: ("fileprovider", ".pushkit.fileprovider")
    case .liveactivity: ("liveactivity", ".push-type.liveactivity")
    case .location: ("location", ".location-query")
    case .mdm: ("mdm", "")
    case .pushtotalk: ("pushtotalk", ".voip-ptt")
    case .voip: ("voip", ".voip")
    case .widgets: ("widgets", ".push-type.widgets")
    }
  }
}

extension UnsafeRawBufferPointer {
  /// The last four bytes, for comparison; nil if there are fewer.
  fileprivate var ending: UInt32? {
    count >= 4 ? loadUnaligned(fromByteOffset: count - 4, as: UInt32.self) : nil
  }
}
