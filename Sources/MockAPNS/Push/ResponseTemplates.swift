import APNSMockRules
import APNSMockHTTPMessage

/// The header fields of APNs' responses, prepared once per connection; only status and ids are filled in for each
/// response.
///
/// The fields are those that were observed: `apns-id`, and `apns-unique-id` on accepted sandbox pushes, nothing else
/// (Protocol.md, section 7.1). Those of broadcasts and channel management, which are rare, are created for each
/// response.
struct ResponseTemplates {
  /// The header fields of one kind of response, and the positions of its ids.
  struct Template {
    var headers: HeaderList
    let apnsID: ByteRange
    let uniqueID: ByteRange?
    private let status: ByteRange

    /// - Parameters:
    ///   - status: A status of three digits.
    ///   - idName: The name of the field with the id.
    ///   - channelID: The value of `apns-channel-id`; nil for a response without it.
    ///   - withUniqueID: Whether the response carries `apns-unique-id`.
    init(
      status: Int, idName: String = "apns-id", channelID: String? = nil, withUniqueID: Bool, contentType: Bool
    ) {
      var headers = HeaderList([(":status", String(status))])
      self.status = ByteRange(offset: headers.bytes.count - 3, count: 3)
      headers.append(name: idName, value: IdentifierSource.blank)
      let afterID = headers.bytes.count
      apnsID = ByteRange(offset: afterID - IdentifierSource.length, count: IdentifierSource.length)
      if let channelID { headers.append(name: "apns-channel-id", value: channelID) }
      if withUniqueID {
        headers.append(name: "apns-unique-id", value: IdentifierSource.blank)
        uniqueID = ByteRange(
          offset: headers.bytes.count - IdentifierSource.length, count: IdentifierSource.length)
      } else {
        uniqueID = nil
      }
      if contentType { headers.append(name: "content-type", value: "application/json") }
      self.headers = headers
    }

    /// Sets another status of three digits.
    mutating func set(status: Int) {
      headers.withMutableValue(self.status) { digits in
        digits[0] = UInt8(ascii: "0") + UInt8(status / 100 % 10)
        digits[1] = UInt8(ascii: "0") + UInt8(status / 10 % 10)
        digits[2] = UInt8(ascii: "0") + UInt8(status % 10)
      }
    }

    /// Returns the `apns-id` if the server generated it; empty if it is the client's.
    func generatedID(of facts: PushFacts) -> ArraySlice<UInt8> {
      facts.apnsID != nil && facts.apnsIDIsUUID ? [] : headers.bytes[apnsID.indices]
    }
  }

  /// The response to an accepted push.
  var accepted: Template
  /// The response to a rejected push, whose status must be set first.
  var rejected: Template
  /// The response to a header list beyond the size limit: only a status.
  let headersTooLarge = HeaderList([(":status", "431")])

  init(environment: PushEnvironment, settings: APNSSettings) {
    accepted = Template(status: 200, withUniqueID: environment == .sandbox, contentType: false)
    rejected = Template(status: 400, withUniqueID: false, contentType: settings.errorContentType)
  }
}
