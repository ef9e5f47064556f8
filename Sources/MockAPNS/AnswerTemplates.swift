import APNSRules
import HTTPMessage

/// The headers of APNs' answers, prepared once for each connection; only status and ids are filled in.
///
/// Shape and header set: APNS.md section 7.1, observed: `apns-id`, `apns-unique-id` on accepted sandbox pushes, nothing else.
struct AnswerTemplates {
  /// The headers of one kind of answer, and where its ids stand.
  struct Template {
    var headers: HeaderList
    let apnsID: ByteRange
    let uniqueID: ByteRange?
    private let status: ByteRange

    /// - Parameters:
    ///   - status: of three digits.
    ///   - withUniqueID: whether the answer carries `apns-unique-id`.
    init(status: Int, withUniqueID: Bool, contentType: Bool) {
      var headers = HeaderList([(":status", String(status))])
      self.status = ByteRange(offset: headers.bytes.count - 3, count: 3)
      headers.append(name: "apns-id", value: IdentifierSource.blank)
      let afterID = headers.bytes.count
      apnsID = ByteRange(offset: afterID - IdentifierSource.length, count: IdentifierSource.length)
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

    /// Makes it one for another status of three digits.
    mutating func set(status: Int) {
      headers.withMutableValue(self.status) { digits in
        digits[0] = UInt8(ascii: "0") + UInt8(status / 100 % 10)
        digits[1] = UInt8(ascii: "0") + UInt8(status / 10 % 10)
        digits[2] = UInt8(ascii: "0") + UInt8(status % 10)
      }
    }

    /// The `apns-id` in it, if that is not the client's own.
    func generatedID(of facts: PushFacts) -> ArraySlice<UInt8> {
      facts.apnsID != nil && facts.apnsIDIsUUID ? [] : headers.bytes[apnsID.indices]
    }
  }

  /// For an accepted push.
  var accepted: Template
  /// For a rejected push, whose status is to be set.
  var rejected: Template
  /// For a header list beyond the limit: a status and nothing else (CONTRACT.md, security defaults).
  let headersTooLarge = HeaderList([(":status", "431")])

  init(environment: PushEnvironment, settings: APNSSettings) {
    accepted = Template(status: 200, withUniqueID: environment == .sandbox, contentType: false)
    rejected = Template(status: 400, withUniqueID: false, contentType: settings.errorContentType)
  }
}
