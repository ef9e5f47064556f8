import APNSRules
import FaultModel
import Faults
import HTTPMessage

/// The changes that faults make to a response: its body, its header fields and the pieces it is sent in.
struct ResponseMutation {
  /// The number of pieces and the total time over which they are sent; nil to send everything at once.
  private(set) var dribble: (chunks: Int, over: Duration)?
  /// The time between two pieces.
  var interval: Duration? { dribble.map { $0.over / $0.chunks } }

  private var pieces = 1
  private var isTruncated = false
  private var isGarbled = false
  private var dropsErrorBody = false
  private var dropped: [String] = []
  private var idChange: Action.IDChange?

  /// Whether the response is sent unchanged.
  private(set) var isPlain = true

  /// Adds an action. Actions that do not change the response itself are ignored.
  mutating func add(_ action: Action) {
    switch action {
    case .dribble(let chunks, let time):
      dribble = (max(1, chunks), time)
      pieces = max(1, chunks)
    case .splitBody: pieces = max(2, pieces)
    case .truncateBody: isTruncated = true
    case .garbleBody: isGarbled = true
    case .emptyErrorBody: dropsErrorBody = true
    case .dropHeader(let name): dropped.append(name)
    case .changeID(let change): idChange = change
    default: return
    }
    isPlain = false
  }

  /// Returns the body, changed and split into the pieces to send; empty for no body.
  func parts(of body: [UInt8], status: Int) -> [[UInt8]] {
    if dropsErrorBody, status != 200 { return [] }
    var body = body
    if isTruncated { body.removeLast(body.count - body.count / 2) }
    // The complement of ASCII is neither valid UTF-8 nor JSON.
    if isGarbled { body = body.map { ~$0 } }
    guard pieces > 1, body.count > 1 else { return body.isEmpty ? [] : [body] }
    let count = min(pieces, body.count)
    return (0..<count).map { piece in Array(body[body.count * piece / count..<body.count * (piece + 1) / count]) }
  }

  /// Returns the changed header fields.
  func headers(_ headers: HeaderList) -> HeaderList {
    guard !dropped.isEmpty || idChange != nil else { return headers }
    var changed = HeaderList()
    headers.forEachField { name, value in
      let name = headers.string(name)
      guard !dropped.contains(name) else { return }
      var value = headers.string(value)
      if name == "apns-id" || name == "apns-unique-id" {
        switch idChange {
        case .upperCase: value = value.uppercased()
        case .lowerCase: value = value.lowercased()
        case nil: break
        }
      }
      changed.append(name: name, value: value)
    }
    return changed
  }
}

/// The header fields of APNs' responses, prepared once per connection; only status and ids are filled in for each
/// response.
///
/// The fields are those that were observed: `apns-id`, and `apns-unique-id` on accepted sandbox pushes, nothing else
/// (Protocol.md, section 7.1).
struct AnswerTemplates {
  /// The header fields of one kind of response, and the positions of its ids.
  struct Template {
    var headers: HeaderList
    let apnsID: ByteRange
    let uniqueID: ByteRange?
    private let status: ByteRange

    /// - Parameters:
    ///   - status: A status of three digits.
    ///   - withUniqueID: Whether the response carries `apns-unique-id`.
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
