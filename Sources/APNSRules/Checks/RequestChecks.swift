internal import HTTPMessage

/// Rows 3 to 5, 14 and 15 of Protocol.md, section 8.2: the syntax of a request (sections 2 and 13).
extension Rulebook {
  /// Rows 3 to 5: method before path (observed), path before credential (Protocol.md, section 13 row 21), then
  /// repeated headers.
  ///
  /// A path of channel management or broadcasts passes: APNs checks the credential first (section 8.1, observed),
  /// and `checkIsPush` rejects it afterwards.
  ///
  /// - Parameter acceptsPushes: Whether the listener accepts pushes to device tokens. That one for channel management
  ///   does not is a choice of this server (section 10.2).
  func checkRequest(
    _ facts: PushFacts, _ packed: UnsafeRawBufferPointer, acceptsPushes: Bool
  ) throws(Rejection) {
    let method = facts.method.map { packed.part($0.indices) }
    guard facts.deviceToken == nil else {
      guard let method, method.equals("POST") else { throw Self.notPOST }
      guard acceptsPushes else { throw Self.pushToManagement }
      if facts.repeatedName != nil { throw Self.repeatedHeader }
      return
    }
    let path = facts.path.map { packed.part($0.indices) }
    if let method, let path, path.hasPrefix("/1/apps/") {
      let isList = path.hasSuffix("/all-channels")
      guard method.equals("GET") || !isList && (method.equals("POST") || method.equals("DELETE")) else {
        throw Self.noChannelMethod
      }
    } else {
      guard let method, method.equals("POST") else { throw Self.notPOST }
      guard let path, path.hasPrefix("/4/broadcasts/") else { throw Self.otherPath }
    }
    if facts.repeatedName != nil { throw Self.repeatedHeader }
  }

  /// Rejects an authenticated request to channel management or broadcasts, which are not implemented.
  func checkIsPush(_ facts: PushFacts) throws(Rejection) {
    guard facts.deviceToken != nil else { throw Self.noBroadcasts }
  }

  private static let notPOST = Rejection(.method, .methodNotAllowed) { facts, packed in
    "the method is \(Explanation.quoted(facts.method, packed)), a push is sent with POST"
  }
  private static let otherPath = Rejection(.path, .badPath) { facts, packed in
    "the path is \(Explanation.quoted(facts.path, packed)); the path of a push is /3/device/ and the device token"
  }
  private static let pushToManagement = Rejection(.path, .badPath) { _, _ in
    "this listener serves broadcasts and channel management only: send pushes to a listener of --apns"
  }
  private static let noChannelMethod = Rejection(.method, .methodNotAllowed) { facts, packed in
    "the method is \(Explanation.quoted(facts.method, packed)); channels are managed with POST, GET and DELETE, "
      + "and all-channels is read with GET"
  }
  private static let noBroadcasts = Rejection(.path, .badPath) { facts, packed in
    "the path is \(Explanation.quoted(facts.path, packed)); channel management and broadcasts are not implemented"
  }
  private static let repeatedHeader = Rejection(.duplicateHeaders, .duplicateHeaders) { facts, packed in
    "the header \(Explanation.quoted(facts.repeatedName, packed)) is repeated: send each header once"
  }

  /// Makes the checks of row 14, in their order.
  func checkHeaders(_ facts: PushFacts, _ packed: UnsafeRawBufferPointer) throws(Rejection) {
    if facts.apnsID != nil, !facts.apnsIDIsUUID { throw Self.idIsNoUUID }
    if facts.expirationText != nil, facts.expiration == nil { throw Self.expirationIsNoTime }
    if facts.priorityText != nil, facts.priority == 0 { throw Self.unknownPriority }
    if let id = facts.collapseID, id.count > Self.collapseIDLimit { throw Self.longCollapseID }
    if facts.pushType == nil {
      if facts.pushTypeText != nil { throw Self.unknownPushType }
      if mode == .strict { throw Self.missingPushType }
    }
  }

  private static let idIsNoUUID = Rejection(.apnsID, .badMessageId) { facts, packed in
    "apns-id \(Explanation.quoted(facts.apnsID, packed)) is not a UUID: "
      + "send one as 8-4-4-4-12 hexadecimal digits, or none"
  }
  private static let expirationIsNoTime = Rejection(.expiration, .badExpirationDate) { facts, packed in
    "apns-expiration \(Explanation.quoted(facts.expirationText, packed)) is not a UNIX time: "
      + "send whole seconds as digits, or 0"
  }
  private static let unknownPriority = Rejection(.priority, .badPriority) { facts, packed in
    "apns-priority \(Explanation.quoted(facts.priorityText, packed)) is not one of 10, 5 and 1"
  }
  private static let longCollapseID = Rejection(.collapseID, .badCollapseId) { facts, packed in
    "apns-collapse-id \(Explanation.quoted(facts.collapseID, packed)) has \(facts.collapseID?.count ?? 0) bytes, "
      + "at most \(collapseIDLimit) are allowed"
  }
  private static let unknownPushType = Rejection(.pushType, .invalidPushType) { facts, packed in
    "apns-push-type \(Explanation.quoted(facts.pushTypeText, packed)) is unknown: expected one of "
      + PushType.allCases.map(\.text).joined(separator: ", ")
  }
  private static let missingPushType = Rejection(.pushType, .invalidPushType) { _, _ in
    "apns-push-type is missing, which rules \"strict\" demand: send it"
  }

  /// Row 15: after the credential (observed), before the topic.
  ///
  /// - Parameter isRegistered: Returns whether a device token is registered.
  func checkDeviceToken(
    _ facts: PushFacts, _ packed: UnsafeRawBufferPointer, isRegistered: (UnsafeRawBufferPointer) -> Bool
  ) throws(Rejection) {
    guard let token = facts.deviceToken, !token.isEmpty else { throw Self.missingDeviceToken }
    let digits = packed.part(token.indices)
    guard DeviceToken.isWellFormed(digits) else { throw Self.malformedDeviceToken }
    if digits.count == 64, mode != .lenient, digits.allSatisfy({ $0 == 0x30 }), !isRegistered(digits) {
      throw Self.zeroDeviceToken
    }
  }

  private static let missingDeviceToken = Rejection(.deviceToken, .missingDeviceToken) { _, _ in
    "the path has no device token after /3/device/: add it"
  }
  private static let malformedDeviceToken = Rejection(.deviceToken, .badDeviceToken) { facts, packed in
    let token = facts.deviceToken?.indices.clamped(to: packed.indices) ?? 0..<0
    let fault =
      !packed.part(token).isHexadecimal
      ? "has other characters than hexadecimal digits"
      : token.count > 400 ? "has \(token.count) digits, more than 400" : "has an odd number of digits"
    return "the device token \(Explanation.quoted(facts.deviceToken, packed)) \(fault): "
      + "send the bytes the device registered, in hexadecimal"
  }

  /// Several projects test a provider token with this response (Protocol.md, section 8.1, observed).
  private static let zeroDeviceToken = Rejection(.deviceToken, .badDeviceToken) { _, _ in
    "the device token is 64 zeros, which no device has: send the token the device registered"
  }

  /// The maximum length in bytes, inclusive (documented).
  private static var collapseIDLimit: UInt16 { 64 }
}
