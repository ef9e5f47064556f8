internal import HTTPMessage

/// Rows 3 to 5, 14 and 15 of APNS.md section 8.2: what can be said of a request by its syntax alone (sections 2 and
/// 13).
extension Rulebook {
  /// Rows 3 to 5: method before path (observed), path before credential (APNS.md section 13 row 21), repeated names.
  func checkRequest(_ facts: PushFacts, _ packed: UnsafeRawBufferPointer) throws(Rejection) {
    guard let method = facts.method, packed.part(method.indices).equals("POST") else {
      throw Rejection(.method, .methodNotAllowed) { [method = facts.method] packed in
        "the method is \(Explanation.quoted(method, packed)), a push is sent with POST"
      }
    }
    guard facts.deviceToken != nil else {
      throw Rejection(.path, .badPath) { [path = facts.path] packed in
        "the path is \(Explanation.quoted(path, packed)), a push goes to /3/device/ and the device token"
      }
    }
    if let repeated = facts.repeatedName {
      throw Rejection(.duplicateHeaders, .duplicateHeaders) { packed in
        "the header \(Explanation.quoted(repeated, packed)) came more than once: send each header once"
      }
    }
  }

  /// Row 14, in its order.
  func checkHeaders(_ facts: PushFacts, _ packed: UnsafeRawBufferPointer) throws(Rejection) {
    if let id = facts.apnsID, !facts.apnsIDIsUUID {
      throw Rejection(.apnsID, .badMessageId) { packed in
        "apns-id \(Explanation.quoted(id, packed)) is not a UUID: send one as 8-4-4-4-12 hexadecimal digits, or none"
      }
    }
    if let text = facts.expirationText, facts.expiration == nil {
      throw Rejection(.expiration, .badExpirationDate) { packed in
        "apns-expiration \(Explanation.quoted(text, packed)) is not a UNIX time: "
          + "send whole seconds in digits alone, or 0"
      }
    }
    if let text = facts.priorityText, facts.priority == 0 {
      throw Rejection(.priority, .badPriority) { packed in
        "apns-priority \(Explanation.quoted(text, packed)) is not one of 10, 5 and 1"
      }
    }
    if let id = facts.collapseID, id.count > Self.collapseIDLimit {
      throw Rejection(.collapseID, .badCollapseId) { packed in
        "apns-collapse-id \(Explanation.quoted(id, packed)) has \(id.count) bytes, "
          + "at most \(Self.collapseIDLimit) are allowed"
      }
    }
    if facts.pushType == nil { try checkMissingType(facts) }
  }

  private func checkMissingType(_ facts: PushFacts) throws(Rejection) {
    if let text = facts.pushTypeText {
      throw Rejection(.pushType, .invalidPushType) { packed in
        "apns-push-type \(Explanation.quoted(text, packed)) is not known: it is one of "
          + PushType.allCases.map(\.text).joined(separator: ", ")
      }
    }
    if mode == .strict {
      throw Rejection(.pushType, .invalidPushType) { _ in
        "apns-push-type is missing, which rules \"strict\" demand: send it"
      }
    }
  }

  /// Row 15: after the credential (observed), before the topic.
  func checkDeviceToken(_ facts: PushFacts, _ packed: UnsafeRawBufferPointer) throws(Rejection) {
    guard let token = facts.deviceToken, !token.isEmpty else {
      throw Rejection(.deviceToken, .missingDeviceToken) { _ in
        "nothing stands after /3/device/ in the path: put the device token there"
      }
    }
    let text = packed.part(token.indices)
    guard DeviceToken.isWellFormed(text) else {
      throw Rejection(.deviceToken, .badDeviceToken) { [isHexadecimal = text.isHexadecimal] packed in
        let fault =
          !isHexadecimal
          ? "has other characters than hexadecimal digits"
          : token.count > 400 ? "has \(token.count) digits, more than 400" : "has an odd number of digits"
        return "the device token \(Explanation.quoted(token, packed)) \(fault): "
          + "send the bytes the device registered, in hexadecimal"
      }
    }
  }

  /// In bytes, inclusive (documented).
  private static var collapseIDLimit: UInt16 { 64 }
}
