import APNSMockFaultModel
internal import APNSMockRules
internal import APNSMockNotation

extension Action.Response {
  /// The schema of a response.
  static let schema: MapSchema<ResponseValues> = MapSchema(
    "response", ResponseValues(),
    .optional("status", \.status, .integer(200...599), default: "the status of the reason", "The HTTP status."),
    .optional(
      "reason", \.reason, .nullableText, default: "the most common reason of the status",
      "The reason in the body. An empty value is a response without a reason."),
    .defaulted(
      "timestamp", \.timestamp, .timestamp, default: "`now`", writing: .unlessDefault,
      "The timestamp in the body of a 410: an offset from the arrival of the push, or a time."),
    .defaulted("headers", \.headers, .headers, default: "none", writing: .unlessDefault, "Additional header fields."),
    .optional(
      "retry_after", \.retryAfter, .retryAfter, default: "none",
      "The header field `retry-after`: a time to wait, sent in seconds, or `{date: 30s}`, sent as the date after this time."
    ),
    .optional(
      "body", \.body, .textOrJSON(limit: 65_536), default: "the reason as JSON",
      "The whole body; a map or list is sent as JSON."),
    .defaulted(
      "latch", \.blocksTokenUpdates, .flag, writing: .unlessDefault,
      "With `TooManyProviderTokenUpdates`: whether the connection repeats the response until `apns: {token_update_interval: …}` has passed."
    ),
    .defaulted(
      "unreal", \.isUnreal, .flag, writing: .unlessDefault,
      "Whether a status and a reason are allowed that do not belong together or that APNs does not have.")
  ) { map, values in
    guard values.statusOrDefault != nil else {
      map.parser.fail(map.node, "status is missing", hint: "{status: 503}, or a reason of APNs, which determines it")
      return false
    }
    if values.retryAfter != nil, values.headers.contains(where: { $0.name == "retry-after" }) {
      return map.fail(at: \.retryAfter, "headers has retry-after, too", hint: "remove one of them")
    }
    let response = values.response
    if values.blocksTokenUpdates, response.reason != Reason.tooManyProviderTokenUpdates.text {
      return map.fail(
        at: \.blocksTokenUpdates, "it requires the reason \(Reason.tooManyProviderTokenUpdates.text)")
    }
    return values.isUnreal || response.check(map)
  }

  /// Checks whether APNs could send the response.
  private func check(_ map: CheckedMap<ResponseValues>) -> Bool {
    let property: PartialKeyPath<ResponseValues> = map.has(\.reason) ? \.reason : \.status
    let unreal = "or set unreal: true"
    switch reality {
    case .real: return true
    case .timestampOfOther: return map.fail(at: \.timestamp, "a \(status) has no timestamp", hint: "a 410 has one")
    case .unknownStatus:
      return map.fail(
        at: \.status, "APNs has no status \(status)",
        hint: "its statuses are \(Reason.statuses.map(String.init).joined(separator: ", ")); \(unreal)")
    case .reasonOfSuccess: return map.fail(at: property, "a 200 has no reason", hint: "omit it, \(unreal)")
    case .missingReason:
      return map.fail(at: property, "a \(status) requires a reason", hint: "add one, \(unreal)")
    case .otherStatus(let reason):
      return map.fail(
        at: property, "\(reason.text) is a \(reason.status), not a \(status)",
        hint: "\(Reason.names(of: status)), \(unreal)")
    case .unknownReason(let text):
      map.warn(
        at: property, "unknown reason \"\(text.shortened)\"",
        hint: SchemaParser.guess(text, among: Reason.allCases.map(\.text)) ?? "set unreal: true if this is intended")
      return true
    }
  }
}

extension Schema<Action.Response> {
  static let response = Schema.map(Action.Response.schema, make: \.response) { ResponseValues($0) }
}

/// The keys of a response as written; those that depend on others are nil if absent.
struct ResponseValues: Sendable {
  var status: Int?
  /// The inner value is nil for a response without a reason.
  var reason: String??
  var timestamp = Action.Timestamp.relative(.zero)
  var headers: [Action.Field] = []
  var retryAfter: Action.RetryAfter?
  var body: String?
  var blocksTokenUpdates = false
  var isUnreal = false

  init() {}

  init(_ response: Action.Response) {
    status = response.status
    if response.reason != nil || response.body == nil && Action.Response.defaultReason(of: response.status) != nil {
      reason = .some(response.reason)
    }
    timestamp = response.timestamp
    headers = response.headers
    retryAfter = response.retryAfter
    body = response.body.map { String(decoding: $0, as: UTF8.self) }
    blocksTokenUpdates = response.blocksTokenUpdates
    isUnreal = response.reality != .real
  }

  /// The status, if absent that of the reason; nil without either.
  var statusOrDefault: Int? { status ?? reason.flatMap { $0.flatMap(Reason.init)?.status } }

  var response: Action.Response {
    let status = statusOrDefault ?? 200
    let defaultReason = body == nil ? Action.Response.defaultReason(of: status) : nil
    return Action.Response(
      status: status, reason: reason ?? defaultReason, timestamp: timestamp, headers: headers, retryAfter: retryAfter,
      body: body,
      blocksTokenUpdates: blocksTokenUpdates)
  }
}

/// The schema of a time in the past.
private let agoSchema = MapSchema(
  "ago", Duration.zero, .required("ago", \.self, .duration, "The time before the push arrived."))

extension Schema<Action.Timestamp> {
  /// `now`, `-24h`, a time, or `{ago: 24h}`.
  fileprivate static let timestamp = Schema(
    form: .either(.text(examples: ["now", "-24h", "2026-01-31T12:00:00Z"]), .map(agoSchema.description)),
    parse: { $0.parseTimestamp($1) },
    write: { timestamp, writer in
      switch timestamp {
      case .relative(let duration): writer.string(DurationFormat.text(duration))
      case .absolute(let time): writer.string(TimestampFormat.text(time) ?? "now")
      }
    })
}

/// The schema of a date after a time.
private let dateSchema = MapSchema(
  "date", Duration.zero, .required("date", \.self, .duration, "The time from the arrival of the push to the date."))

extension Schema<Action.RetryAfter> {
  /// `30s`, or `{date: 30s}`.
  fileprivate static let retryAfter = Schema(
    form: .either(.duration(isPositive: false), .map(dateSchema.description)),
    parse: { parser, node in
      if case .map = node.content { return dateSchema.parse(node, parser).map { .date($0) } }
      return parser.parseDuration(node).map { .seconds($0) }
    },
    write: { retryAfter, writer in
      switch retryAfter {
      case .seconds(let time): writer.string(DurationFormat.text(time))
      case .date(let time): writer.object { $0.member("date", DurationFormat.text(time)) }
      }
    })
}

extension Schema<[Action.Field]> {
  /// Header fields by name.
  fileprivate static let headers = Schema(
    form: .named(.scalar), parse: { $0.parseHeaders($1) },
    write: { headers, writer in
      writer.object { writer in
        for field in headers { writer.member(field.name, field.value) }
      }
    })
}

extension SchemaParser {
  fileprivate func parseHeaders(_ node: SchemaNode) -> [Action.Field]? {
    guard let entries = parseEntries(node) else { return nil }
    guard entries.count <= 32 else {
      fail(node, "more than 32 header fields")
      return nil
    }
    var fields: [Action.Field] = []
    for entry in entries {
      let value = node.member(entry)
      guard let name = parseHeaderName(entry.key, at: entry.position, path: value.path),
        let scalar = parseScalar(value, as: .any)
      else { continue }
      guard scalar.text.utf8.count <= 4096, scalar.text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
      else {
        fail(value, scalar, "not a valid value of a header field", hint: "at most 4096 bytes, and no line breaks")
        continue
      }
      if name == "retry-after", Int(scalar.text).map({ $0 >= 0 }) != true, HTTPDate.milliseconds(scalar.text) == nil {
        let duration =
          DurationFormat.duration(scalar.text).map { "did you mean \(Int($0.inSeconds.rounded(.up)))? " } ?? ""
        warn(
          value, "\(scalar.text.shortened) is neither a number of seconds nor a date",
          hint: duration + "retry_after: 30s writes it in seconds, retry_after: {date: 30s} as a date")
      }
      fields.append(Action.Field(name: name, value: scalar.text))
    }
    return fields.count == entries.count ? fields : nil
  }

  /// Parses `now`, `-24h`, a time, or `{ago: 24h}`.
  fileprivate func parseTimestamp(_ node: SchemaNode) -> Action.Timestamp? {
    if case .map = node.content { return agoSchema.parse(node, self).map { .relative(.zero - $0) } }
    guard let scalar = parseScalar(node, as: .any) else { return nil }
    if scalar.text == "now" { return .relative(.zero) }
    if let time = TimestampFormat.milliseconds(scalar.text), time >= 0 { return .absolute(time) }
    let text = scalar.text.hasPrefix("+") ? String(scalar.text.dropFirst()) : scalar.text
    if let duration = DurationFormat.duration(text) { return .relative(duration) }
    fail(
      node, scalar, "\"\(scalar.text.shortened)\" is not a time",
      hint: "times are written now, \"-24h\", 2026-01-31T12:00:00Z or {ago: 24h}")
    return nil
  }

  /// Parses a text, or a map or list, which is converted to JSON.
  func parseTextOrJSON(_ node: SchemaNode, limit: Int) -> String? {
    let text: String?
    switch node.content {
    case .scalar: text = parseText(node)
    case .list, .map:
      var writer = JSONWriter()
      node.yaml.write(to: &writer)
      text = String(decoding: writer.bytes, as: UTF8.self)
    }
    guard let text, text.utf8.count <= limit else {
      if text != nil { fail(node, "longer than \(limit) bytes") }
      return nil
    }
    return text
  }
}

extension Reason {
  /// All statuses of APNs, with 200 first.
  static let statuses = [200] + Set(allCases.map(\.status)).sorted()

  /// Returns the reasons of a status, in words.
  static func names(of status: Int) -> String {
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
