/// The extensions by which Apple marks a push certificate (APNS.md section 4.1).
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

  /// What stands in the first two: NULL.
  static let mark: [UInt8] = [0x05, 0x00]

  /// The list of topics in DER: topic and a sequence of labels, in turns. The label follows from the topic's suffix.
  static func encode(topics: [String]) -> [UInt8] {
    let content = topics.flatMap { topic in
      element(DERReader.Tag.utf8String, Array(topic.utf8))
        + element(DERReader.Tag.sequence, element(DERReader.Tag.utf8String, Array(label(of: topic).utf8)))
    }
    return element(DERReader.Tag.sequence, content)
  }

  /// The topics of a list in DER, in order; nil if it is not such a list.
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
        continue  // The labels of the topic before it say nothing that its suffix does not.
      default:
        return nil
      }
    }
    return topics
  }

  /// The topics of an extension that holds one string or a list of topics in DER; empty if it holds neither.
  static func decodeTopicOrTopics(_ der: [UInt8]) -> [String] {
    var reader = DERReader(der[...])
    if let element = reader.next(), element.tag != DERReader.Tag.sequence {
      // One element of the list's kind, and nothing after it.
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
