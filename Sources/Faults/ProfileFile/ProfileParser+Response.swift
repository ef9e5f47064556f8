import FaultModel
internal import APNSRules
internal import Notation

extension ProfileParser {
  /// Parses the fields of `respond`.
  func response(_ place: Located) -> Action.Response? {
    guard let map = map(place, ResponseKey.self) else { return nil }
    let isUnreal = map[.unreal].map { flag($0) } ?? false
    // An empty `reason:` is a response without a reason, which only `unreal` allows.
    let reason = map[.reason].map { $0.node.isEmpty ? .some(nil) : text($0).map(Optional.some) } ?? .some(nil)
    let body = map[.body].map { textOrJSON($0, limit: 65_536).map(Optional.some) } ?? .some(nil)
    let status = map[.status].map { whole($0, in: 200...599) } ?? reason.flatMap { $0.flatMap(Reason.init)?.status }
    let headers = map[.headers].map { fields($0) } ?? []
    let timestamp = map[.timestamp].map { time($0) } ?? .relative(.zero)
    let repeatsUntilUpdateInterval = map[.latch].map { flag($0) } ?? false
    guard let isUnreal, let reason, let body, let headers, let timestamp, let repeatsUntilUpdateInterval else {
      return nil
    }
    guard let status else {
      if !map.has(.status) {
        fail(place, "status is missing", hint: "{status: 503}, or a reason of APNs, which determines it")
      }
      return nil
    }
    var response = Action.Response(
      status: status, reason: reason, timestamp: timestamp, headers: headers, body: body,
      repeatsUntilUpdateInterval: repeatsUntilUpdateInterval)
    if !map.has(.reason), body == nil { response.reason = Action.Response.defaultReason(of: status) }
    if repeatsUntilUpdateInterval, response.reason != Reason.tooManyProviderTokenUpdates.text {
      fail(
        at: map.position(of: .latch), map.path(of: .latch),
        "it requires the reason \(Reason.tooManyProviderTokenUpdates.text)")
    }
    if !isUnreal { check(response, map) }
    return response
  }

  /// Checks whether APNs could send the response.
  private func check(_ response: Action.Response, _ map: Map<ResponseKey>) {
    let key = map.has(.reason) ? ResponseKey.reason : .status
    let unreal = "or set unreal: true"
    switch response.reality {
    case .real: break
    case .timestampOfOther:
      fail(
        at: map.position(of: .timestamp), map.path(of: .timestamp), "a \(response.status) has no timestamp",
        hint: "a 410 has one")
    case .unknownStatus:
      fail(
        at: map.position(of: .status), map.path(of: .status), "APNs has no status \(response.status)",
        hint: "its statuses are \(Reason.statuses.map(String.init).joined(separator: ", ")); \(unreal)")
    case .reasonOfSuccess:
      fail(at: map.position(of: key), map.path(of: key), "a 200 has no reason", hint: "omit it, \(unreal)")
    case .missingReason:
      fail(
        at: map.position(of: key), map.path(of: key), "a \(response.status) requires a reason",
        hint: "add one, \(unreal)"
      )
    case .otherStatus(let reason):
      fail(
        at: map.position(of: key), map.path(of: key),
        "\(reason.text) is a \(reason.status), not a \(response.status)",
        hint: "\(Reason.spoken(of: response.status)), \(unreal)")
    case .unknownReason(let text):
      warn(
        at: map.position(of: key), map.path(of: key), "unknown reason \"\(text.shortened)\"",
        hint: Self.guess(text, among: Reason.allCases.map(\.text)) ?? "set unreal: true if this is intended")
    }
  }

  private func fields(_ place: Located) -> [Action.Field]? {
    guard let entries = entries(place) else { return nil }
    guard entries.count <= 32 else {
      fail(place, "more than 32 header fields")
      return nil
    }
    var fields: [Action.Field] = []
    for entry in entries {
      let place = place.member(entry)
      guard let name = fieldName(entry.key, at: entry.position, path: place.path),
        let scalar = scalar(place, for: .any)
      else { continue }
      guard scalar.text.utf8.count <= 4096, scalar.text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
      else {
        fail(place, scalar, "no value of a header field", hint: "at most 4096 bytes, and no line breaks")
        continue
      }
      fields.append(Action.Field(name: name, value: scalar.text))
    }
    return fields.count == entries.count ? fields : nil
  }

  /// Parses `now`, `-24h`, a time, or `{ago: 24h}`.
  private func time(_ place: Located) -> Action.Timestamp? {
    if case .map = place.node.content {
      return map(place, AgoKey.self)?[.ago].flatMap { duration($0) }.map { .relative(.zero - $0) }
    }
    guard let scalar = scalar(place, for: .any) else { return nil }
    if scalar.text == "now" { return .relative(.zero) }
    if let time = TimestampFormat.milliseconds(scalar.text), time >= 0 { return .absolute(time) }
    let text = scalar.text.hasPrefix("+") ? String(scalar.text.dropFirst()) : scalar.text
    if let duration = DurationFormat.duration(text) { return .relative(duration) }
    fail(
      place, scalar, "\"\(scalar.text.shortened)\" is not a time",
      hint: "times are written now, \"-24h\", 2026-01-31T12:00:00Z or {ago: 24h}")
    return nil
  }

  /// Parses a text, or a map or list, which is converted to JSON.
  func textOrJSON(_ place: Located, limit: Int) -> String? {
    let text: String?
    switch place.node.content {
    case .scalar: text = self.text(place)
    case .list, .map:
      var writer = JSONWriter()
      place.node.write(to: &writer)
      text = String(decoding: writer.bytes, as: UTF8.self)
    }
    guard let text, text.utf8.count <= limit else {
      if text != nil { fail(place, "longer than \(limit) bytes") }
      return nil
    }
    return text
  }
}

extension Reason {
  /// All statuses of APNs, with 200 first.
  static let statuses = [200] + Set(allCases.map(\.status)).sorted()

  /// Returns the reasons of a status, in words.
  static func spoken(of status: Int) -> String {
    let texts = allCases.filter { $0.status == status }.map(\.text)
    return texts.isEmpty ? "a \(status) has none" : "a \(status) has \(texts.joinedWithOr)"
  }
}

extension Action.Response {
  /// Whether APNs could send a response, or why not.
  enum Reality: Equatable {
    case real
    case unknownStatus
    case missingReason
    case reasonOfSuccess
    /// The reason belongs to another status.
    case otherStatus(Reason)
    case unknownReason(String)
    case timestampOfOther
  }

  private static let gone = 410

  var reality: Reality {
    guard Reason.statuses.contains(status) else { return .unknownStatus }
    if status != Self.gone, timestamp != .relative(.zero) { return .timestampOfOther }
    if body != nil { return .real }
    guard let reason else { return status == 200 ? .real : .missingReason }
    if status == 200 { return .reasonOfSuccess }
    guard let known = Reason(text: reason) else { return .unknownReason(reason) }
    return known.status == status ? .real : .otherStatus(known)
  }

  /// Returns the default reason of a status; nil for 200 and for statuses that APNs does not have.
  static func defaultReason(of status: Int) -> String? {
    let reason: Reason? =
      switch status {
      case 400: .badDeviceToken
      case 403: .invalidProviderToken
      case 404: .badPath
      case 405: .methodNotAllowed
      case 410: .unregistered
      case 413: .payloadTooLarge
      case 429: .tooManyRequests
      case 500: .internalServerError
      case 503: .serviceUnavailable
      default: nil
      }
    return reason?.text
  }
}
