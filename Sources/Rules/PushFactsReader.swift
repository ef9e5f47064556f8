internal import APNSMockHTTPMessage
internal import APNSMockNotation

/// Reads the packed fields of a request in one pass, identifies them by name, and fills `PushFacts`.
struct PushFactsReader {
  /// The result.
  private(set) var facts = PushFacts()
  private let packed: UnsafeRawBufferPointer
  private let defaultTopic: UnsafeRawBufferPointer?
  private let comparesOtherNames: Bool
  private var seen: KnownField = []
  /// A Bloom filter of names outside `KnownField`: a name whose bit is not set has not occurred before.
  private var otherNames: UInt64 = 0

  /// Reads all fields in `packed`.
  ///
  /// - Parameters:
  ///   - defaultTopic: The topic of a push without `apns-topic`.
  ///   - comparesOtherNames: Whether to search for repeated names among the other fields, which is quadratic in
  ///     their number.
  init(_ packed: UnsafeRawBufferPointer, defaultTopic: UnsafeRawBufferPointer?, comparesOtherNames: Bool) {
    self.packed = packed
    self.defaultTopic = defaultTopic
    self.comparesOtherNames = comparesOtherNames
    HeaderList.forEachField(in: packed) { name, value in read(name, value) }
    readMeaning()
  }

  private mutating func read(_ name: ByteRange, _ value: ByteRange) {
    let known = KnownField(packed[name])
    if known != .authorization, TokenRedaction.mayBeNeeded(for: value, in: packed) {
      facts.mayHaveFurtherTokens = true
    }
    guard !known.isEmpty else {
      if comparesOtherNames { checkRepetition(of: name) }
      return
    }
    if seen.contains(known) {
      if known == .authorization { facts.mayHaveFurtherTokens = true }
      if known != .cookie, facts.repeatedName == nil { facts.repeatedName = name }
      return
    }
    seen.insert(known)
    let unlessEmpty = value.isEmpty ? nil : value
    switch known {
    case .method: facts.method = value
    case .path: facts.path = value
    case .authorization: facts.authorization = unlessEmpty
    case .topic: facts.topic = value
    case .apnsID: facts.apnsID = unlessEmpty
    case .collapseID: facts.collapseID = unlessEmpty
    case .expiration: facts.expirationText = unlessEmpty
    case .priority: facts.priorityText = value
    case .pushType: facts.pushTypeText = unlessEmpty
    default: break
    }
  }

  /// Checks a field with no meaning to the rules for repetition. If its bit is already set, the name is compared
  /// with all previous names.
  private mutating func checkRepetition(of name: ByteRange) {
    let text = packed[name]
    let (first, middle, last) = text.isEmpty ? (0, 0, 0) : (text[0], text[text.count / 2], text[text.count - 1])
    let hash = text.count &* 7 &+ Int(first) &* 5 &+ Int(middle) &* 3 &+ Int(last)
    let bit: UInt64 = 1 << UInt64(hash & 63)
    guard otherNames & bit != 0, facts.repeatedName == nil else {
      otherNames |= bit
      return
    }
    var isRepeated = false
    HeaderList.forEachField(in: packed.part(0..<Int(name.offset) - 4)) { earlier, _ in
      if !isRepeated, packed[earlier].equals(text) { isRepeated = true }
    }
    if isRepeated { facts.repeatedName = name }
  }

  /// Interprets the values without validating them.
  private mutating func readMeaning() {
    if let path = facts.path, packed[path].hasPrefix("/3/device/") {
      facts.deviceToken = ByteRange(offset: Int(path.offset) + 10, count: Int(path.count) - 10)
    }
    if let authorization = facts.authorization {
      facts.signatureRange = PushFacts.signatureRange(of: authorization, in: packed)
    }
    if let id = facts.apnsID { facts.apnsIDIsUUID = packed[id].isCanonicalUUID }
    if let text = facts.expirationText { facts.expiration = packed[text].clampedWholeNumber }
    if let text = facts.priorityText { facts.priority = Self.priority(packed[text]) }
    if let text = facts.pushTypeText { facts.pushType = PushType(packed[text]) }
    facts.topicIsFromCertificate = facts.topic == nil && defaultTopic != nil
    let topic = facts.topic.map { packed[$0] } ?? defaultTopic
    let kind = facts.pushType ?? topic.flatMap { PushType(suffixOf: $0) }
    facts.payloadLimit = kind?.payloadLimit ?? PushType.usualPayloadLimit
    if facts.deviceToken == nil, facts.kind(in: packed) != .push { readChannelRequest() }
  }

  /// Interprets the fields that have another meaning in broadcasts and channel management (Protocol.md, section 10.1):
  /// the path names the app, `apns-request-id` is the id, and the case of the push type does not matter.
  private mutating func readChannelRequest() {
    facts.payloadLimit = RequestKind.broadcastPayloadLimit
    facts.topic = facts.path.flatMap { ChannelRequestPath($0, in: packed)?.bundleID }
    facts.topicIsFromCertificate = false
    facts.pushType = facts.pushTypeText.flatMap {
      packed[$0].equalsIgnoringCase("liveactivity") ? .liveactivity : nil
    }
    guard let id = packed.firstField("apns-request-id"), !id.isEmpty else { return }
    let isUUID = packed[id].isCanonicalUUID
    facts.apnsIDIsUUID = isUUID && (facts.apnsID == nil || facts.apnsIDIsUUID)
    facts.apnsID = id
  }

  private static func priority(_ text: UnsafeRawBufferPointer) -> UInt8 {
    text.equals("10") ? 10 : text.equals("5") ? 5 : text.equals("1") ? 1 : 0
  }
}

/// The fields known to the rules, identified by length and then by bytes.
private struct KnownField: OptionSet {
  var rawValue: UInt16

  static let method = KnownField(rawValue: 1 << 0)
  static let path = KnownField(rawValue: 1 << 1)
  static let authorization = KnownField(rawValue: 1 << 2)
  static let topic = KnownField(rawValue: 1 << 3)
  static let apnsID = KnownField(rawValue: 1 << 4)
  static let collapseID = KnownField(rawValue: 1 << 5)
  static let expiration = KnownField(rawValue: 1 << 6)
  static let priority = KnownField(rawValue: 1 << 7)
  static let pushType = KnownField(rawValue: 1 << 8)
  static let cookie = KnownField(rawValue: 1 << 9)

  init(rawValue: UInt16) { self.rawValue = rawValue }

  /// Identifies the field with this name; empty for any other.
  init(_ name: UnsafeRawBufferPointer) {
    self =
      switch name.count {
      case 5: name.equals(":path") ? .path : []
      case 6: name.equals("cookie") ? .cookie : []
      case 7: name.equals("apns-id") ? .apnsID : name.equals(":method") ? .method : []
      case 10: name.equals("apns-topic") ? .topic : []
      case 13: name.equals("authorization") ? .authorization : name.equals("apns-priority") ? .priority : []
      case 14: name.equals("apns-push-type") ? .pushType : []
      case 15: name.equals("apns-expiration") ? .expiration : []
      case 16: name.equals("apns-collapse-id") ? .collapseID : []
      default: []
      }
  }
}
