/// The extensions of Apple's push certificates (Protocol.md, section 4.1).
enum PushExtensions {
  /// Present in certificates for the development environment.
  static let development = "1.2.840.113635.100.6.3.1"
  /// Present in certificates for the production environment.
  static let production = "1.2.840.113635.100.6.3.2"
  /// The app's bundle id.
  static let bundleID = "1.2.840.113635.100.6.3.3"
  /// The app's VoIP topics.
  static let voipTopics = "1.2.840.113635.100.6.3.4"
  /// The list of all topics.
  static let topics = "1.2.840.113635.100.6.3.6"

  /// The value of the first two extensions: NULL.
  static let mark: [UInt8] = [0x05, 0x00]

  /// Encodes the list of topics in DER: each topic is followed by a sequence of labels. The label is derived from
  /// the topic's suffix.
  static func encode(topics: [String]) -> [UInt8] {
    let content = topics.flatMap { topic in
      element(DERReader.Tag.utf8String, Array(topic.utf8))
        + element(DERReader.Tag.sequence, element(DERReader.Tag.utf8String, Array(label(of: topic).utf8)))
    }
    return element(DERReader.Tag.sequence, content)
  }

  /// Decodes a list of topics, in order; nil if it is invalid.
  static func decodeTopics(_ der: [UInt8]) -> [String]? {
    var outer = DERReader(der[...])
    guard let list = outer.next(), list.tag == DERReader.Tag.sequence, outer.isAtEnd else { return nil }
    var reader = DERReader(list.content)
    var topics: [String] = []
    while !reader.isAtEnd {
      guard let element = reader.next() else { return nil }
      switch element.tag {
      case DERReader.Tag.utf8String, DERReader.Tag.ia5String, DERReader.Tag.printableString:
        guard let topic = String(validating: element.content, as: UTF8.self) else { return nil }
        topics.append(topic)
      case DERReader.Tag.sequence:
        continue  // The labels add nothing to the topic's suffix.
      default:
        return nil
      }
    }
    return topics
  }

  /// Decodes an extension that contains a string or a list of topics; empty if it contains neither.
  static func decodeTopicOrTopics(_ der: [UInt8]) -> [String] {
    var reader = DERReader(der[...])
    if let element = reader.next(), element.tag != DERReader.Tag.sequence {
      // A single string, with nothing after it.
      guard reader.isAtEnd else { return [] }
      return decodeTopics(Self.element(DERReader.Tag.sequence, der)) ?? []
    }
    return decodeTopics(der) ?? []
  }

  private static func label(of topic: String) -> String {
    if topic.hasSuffix(".voip") { return "voip" }
    if topic.hasSuffix(".complication") { return "complication" }
    return "app"
  }

  private static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    var length: [UInt8] = []
    if content.count < 0x80 {
      length = [UInt8(content.count)]
    } else {
      var rest = content.count
      while rest > 0 {
        length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
        rest >>= 8
      }
      length.insert(0x80 | UInt8(truncatingIfNeeded: length.count), at: 0)
    }
    return [tag] + length + content
  }
}
