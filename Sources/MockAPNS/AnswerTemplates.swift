import APNSRules
import HTTPMessage
import Notation

/// The headers and bodies of APNs' answers, prepared once for each connection; only ids and times are filled in.
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
      let blank = String(repeating: "0", count: IdentifierSource.length)
      var headers = HeaderList([(":status", String(status))])
      self.status = ByteRange(offset: headers.bytes.count - 3, count: 3)
      headers.append(name: "apns-id", value: blank)
      let afterID = headers.bytes.count
      apnsID = ByteRange(offset: afterID - IdentifierSource.length, count: IdentifierSource.length)
      if withUniqueID {
        headers.append(name: "apns-unique-id", value: blank)
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

  /// The body for a reason that need not be one of APNs'.
  static func body(reason: String, timestamp: Int64?) -> [UInt8] {
    var writer = JSONWriter(capacity: 64)
    writer.object { writer in
      writer.member("reason", reason)
      if let timestamp { writer.member("timestamp", timestamp) }
    }
    return writer.bytes
  }

  /// A reason as compact JSON, as answers and GOAWAY frames carry it.
  static func text(reason: Reason) -> String { #"{"reason":"\#(reason.text)"}"# }

  /// The body of a rejection: compact JSON (APNS.md section 7.1, observed), with the time of a 410 in milliseconds.
  static func body(reason: Reason, timestamp: Int64?) -> [UInt8] {
    let plain = bodies[Int(reason.rawValue)]
    guard let timestamp else { return plain }
    var digits = String(timestamp)
    return digits.withUTF8 { digits in
      [UInt8](unsafeUninitializedCapacity: plain.count + timestampName.count + digits.count) { body, filled in
        // The closing brace is written over and comes last.
        filled = body.initialize(fromContentsOf: plain) - 1
        filled = body[filled...].initialize(fromContentsOf: timestampName)
        filled = body[filled...].initialize(fromContentsOf: digits)
        filled = body[filled...].initialize(fromContentsOf: CollectionOfOne(UInt8(ascii: "}")))
      }
    }
  }

  private static let timestampName = Array(#","timestamp":"#.utf8)

  private static let bodies: [[UInt8]] = {
    var bodies = [[UInt8]](repeating: [], count: Int(Reason.allCases.map(\.rawValue).max() ?? 0) + 1)
    for reason in Reason.allCases { bodies[Int(reason.rawValue)] = Array(text(reason: reason).utf8) }
    return bodies
  }()
}
