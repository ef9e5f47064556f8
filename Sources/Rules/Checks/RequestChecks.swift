internal import APNSMockHTTPMessage
internal import APNSMockNotation

/// The checks of the syntax of a request (Protocol.md, sections 2, 8.2 and 13).
extension Rulebook {
  /// Method before path (observed), path before credential (Protocol.md, section 13, POST to a wrong path without
  /// credential), then repeated headers.
  ///
  /// - Parameter acceptsPushes: Whether the listener accepts pushes to device tokens. That a listener for channel
  ///   management does not is a choice of this server (section 10.2).
  /// - Returns: What a broadcast or a request of channel management does; nil for a push.
  func checkRequest(
    _ facts: PushFacts, _ packed: UnsafeRawBufferPointer, acceptsPushes: Bool
  ) throws(Rejection) -> ChannelRequest.Operation? {
    let operation: ChannelRequest.Operation?
    if facts.deviceToken != nil {
      try checkPost(facts, packed)
      guard acceptsPushes else { throw Self.pushToManagement }
      operation = nil
    } else {
      operation = try self.operation(facts, packed)
    }
    if facts.repeatedName != nil { throw Self.repeatedHeader }
    return operation
  }

  private func checkPost(_ facts: PushFacts, _ packed: UnsafeRawBufferPointer) throws(Rejection) {
    guard let method = facts.method, packed[method].equals("POST") else { throw Self.notPOST }
  }

  /// Method and path of a request without a device token.
  private func operation(
    _ facts: PushFacts, _ packed: UnsafeRawBufferPointer
  ) throws(Rejection) -> ChannelRequest.Operation {
    let path = facts.path.flatMap { ChannelRequestPath($0, in: packed) }
    guard facts.kind(in: packed) == .channel else {
      try checkPost(facts, packed)
      guard path != nil else { throw Self.otherPath }
      return .broadcast
    }
    let isList = facts.path.map { packed[$0].hasSuffix("/all-channels") } ?? false
    let operation: ChannelRequest.Operation? =
      switch facts.method.map({ packed[$0] }) {
      case let method? where method.equals("GET"): isList ? .list : .read
      case let method? where method.equals("POST") && !isList: .create
      case let method? where method.equals("DELETE") && !isList: .delete
      default: nil
      }
    guard let operation else { throw Self.noChannelMethod }
    guard path != nil else { throw Self.otherPath }
    return operation
  }

  private static let notPOST = Rejection(.method, .methodNotAllowed) { facts, packed in
    "the method is \(Explanation.quoted(facts.method, packed)), a push is sent with POST"
  }
  private static let otherPath = Rejection(.path, .badPath) { facts, packed in
    let path = facts.path.map { packed.part($0.indices.clamped(to: packed.indices)) }
    if let path, let near = NearPath(path) {
      return "the path is \(Explanation.quoted(path)), probably meant as \(near.meant): \(near.difference)"
    }
    let allowed =
      switch facts.kind(in: packed) {
      case .push: "the path of a push is /3/device/ and the device token"
      case .broadcast: "the path of a broadcast is /4/broadcasts/apps/ and the bundle id"
      case .channel:
        "channels are managed at /1/apps/{bundle id}/channels and listed at /1/apps/{bundle id}/all-channels"
      }
    return "the path is \(Explanation.quoted(facts.path, packed)); \(allowed)"
  }
  private static let pushToManagement = Rejection(.path, .badPath) { _, _ in
    "this listener serves broadcasts and channel management only: send pushes to a listener of --apns"
  }
  private static let noChannelMethod = Rejection(.method, .methodNotAllowed) { facts, packed in
    "the method is \(Explanation.quoted(facts.method, packed)); channels are managed with POST, GET and DELETE, "
      + "and all-channels is read with GET"
  }
  private static let repeatedHeader = Rejection(.duplicateHeaders, .duplicateHeaders) { facts, packed in
    "the header \(Explanation.quoted(facts.repeatedName, packed)) is repeated: send each header once"
  }

  /// Makes the checks of the `apns-` headers, in their order.
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
  private static let missingPushType = Rejection(.pushType, .invalidPushType) { _, packed in
    "apns-push-type is missing, which rules \"strict\" demand: send it" + NearHeaderField.note(on: .pushType, packed)
  }

  /// The syntax of the device token: after the credential (observed), before the topic.
  func checkDeviceToken(_ facts: PushFacts, _ packed: UnsafeRawBufferPointer) throws(Rejection) {
    guard let token = facts.deviceToken, !token.isEmpty else { throw Self.missingDeviceToken }
    guard DeviceToken.isWellFormed(packed[token]) else { throw Self.malformedDeviceToken }
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

  /// The maximum length in bytes, inclusive (documented).
  private static var collapseIDLimit: UInt16 { 64 }
}
