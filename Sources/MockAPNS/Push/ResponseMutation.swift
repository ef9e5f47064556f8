import APNSMockFaultModel
import APNSMockHTTPMessage

/// The changes that faults make to a response: its body, its header fields and the parts it is sent in.
struct ResponseMutation {
  /// The time between two parts of the body; nil to send everything at once.
  private(set) var interval: Duration?
  /// Whether the response is sent unchanged.
  private(set) var isEmpty = true

  private var partCount = 1
  private var isTruncated = false
  private var isGarbled = false
  private var dropsErrorBody = false
  private var dropped: [String] = []
  private var idChange: Action.IDChange?

  /// Adds an action. Actions that do not change the response itself are ignored.
  mutating func add(_ action: Action) {
    switch action {
    case .dribble(let chunks, let time):
      partCount = max(1, chunks)
      interval = time / partCount
    case .splitBody: partCount = max(2, partCount)
    case .truncateBody: isTruncated = true
    case .garbleBody: isGarbled = true
    case .emptyErrorBody: dropsErrorBody = true
    case .dropHeader(let name): dropped.append(name)
    case .changeID(let change): idChange = change
    default: return
    }
    isEmpty = false
  }

  /// Returns the body, changed and split into the parts to send; empty for no body.
  func parts(of body: [UInt8], status: Int) -> [[UInt8]] {
    if dropsErrorBody, !HTTPStatus.isSuccess(status) { return [] }
    var body = body
    if isTruncated { body.removeLast(body.count - body.count / 2) }
    // The complement of ASCII is neither valid UTF-8 nor JSON.
    if isGarbled { body = body.map { ~$0 } }
    guard partCount > 1, body.count > 1 else { return body.isEmpty ? [] : [body] }
    let count = min(partCount, body.count)
    return (0..<count).map { part in Array(body[body.count * part / count..<body.count * (part + 1) / count]) }
  }

  /// Returns the changed header fields.
  func headers(_ headers: HeaderList) -> HeaderList {
    guard !dropped.isEmpty || idChange != nil else { return headers }
    var changed = HeaderList()
    headers.forEachField { name, value in
      let name = headers.string(name)
      guard !dropped.contains(name) else { return }
      var value = headers.string(value)
      if ["apns-id", "apns-request-id", "apns-unique-id"].contains(name) {
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
