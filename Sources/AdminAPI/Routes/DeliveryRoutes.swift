internal import APNSMockRules
internal import APNSMockDevices
internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS
internal import APNSMockNotation

/// Routes for the delivery of accepted pushes: their delivery log, and what devices show and receive.
struct DeliveryRoutes: Sendable {
  let state: ServerState

  var routes: [Route] {
    [
      Route.get("/pushes/:id/delivery", show).onQueryExecutor, Route.get("/deliveries", list).onQueryExecutor,
      Route.get("/devices/:id/notifications", notifications).onQueryExecutor,
    ]
  }

  // MARK: - Delivery log

  private func show(_ request: Request, _ context: AdminContext) async throws -> Response {
    let (record, _) = try await PushRoutes(source: state).find(context)
    return .json { write(record, to: &$0) }
  }

  private func list(_ request: Request, _ context: AdminContext) async throws -> Response {
    var parameters = try QueryParameters(request)
    let names = ["apns_unique_id", "apns_id"]
    let hint = "Use ?apns_unique_id= with the header of an accepted push in the sandbox, or ?apns_id=."
    let uniqueID = try parameters.remove(names[0])
    let apnsID = try parameters.remove(names[1])
    try parameters.end(names, hint: hint)
    let snapshot = state.inbox.snapshot()
    let records: [Record]
    switch (uniqueID?.lowercased(), apnsID) {
    case (let uniqueID?, nil): records = try await snapshot.records { state.uniqueID(of: $0) == uniqueID }
    case (nil, let apnsID?): records = try await snapshot.attempts(apnsID: apnsID)
    default: throw Problem.badRequest("the query must have one of apns_unique_id and apns_id", hint: hint)
    }
    return .json { writer in
      writer.arrayMember("items") { writer in
        for record in records { writer.object { write(record, to: &$0) } }
      }
    }
  }

  /// Writes the delivery of a push.
  private func write(_ record: Record, to writer: inout JSONWriter) {
    var entries = state.devices.log(of: record.seq) ?? []
    if entries.isEmpty, let delivery = record.delivery, delivery != .received {
      entries.append(DeliveryLogEntry(state: delivery, time: record.finishedAt ?? record.receivedAt))
    }
    if entries.first?.state != .received, record.delivery != nil || !entries.isEmpty {
      entries.insert(DeliveryLogEntry(state: .received, time: record.receivedAt), at: 0)
    }
    let isForgotten =
      entries.last.map { DeviceRegistry.hasForgottenLog(endedAt: $0.time, now: state.clock.now) } ?? false
    if isForgotten { entries = [] }
    writer.member("seq", record.name)
    writer.member("apns_id", record.apnsID)
    writer.member("apns_unique_id", state.uniqueID(of: record))
    writer.member("device", record.deviceToken.flatMap(state.devices.token)?.deviceID)
    writer.member("state", record.delivery?.text)
    switch record.appearance(state.inbox.findings(on: record, by: state.rulebook)) {
    case .shown:
      writer.member("shown", true)
      writer.nullMember("reason")
    case .notShown(let reason):
      writer.member("shown", false)
      writer.member("reason", reason)
    case .none:
      writer.nullMember("shown")
      writer.nullMember("reason")
    }
    writer.arrayMember("events") { writer in
      for entry in entries {
        writer.object { writer in
          writer.member("at", TimestampFormat.text(entry.time))
          writer.member("state", entry.state.text)
          if let device = entry.deviceID { writer.member("device", device) }
        }
      }
    }
    let message: String? =
      if isForgotten {
        "The delivery log is kept for 7 days after its last entry, by the server's clock."
      } else if !entries.isEmpty {
        nil
      } else if record.accepted {
        "The device token is not registered, so nothing is known about its delivery."
      } else {
        "The push was not accepted."
      }
    writer.member("message", message)
  }

  // MARK: - Notifications

  private func notifications(_ request: Request, _ context: AdminContext) throws -> Response {
    let id = context.parameters.get("id") ?? ""
    guard let contents = state.devices.contents(of: id) else { throw state.problem(.unknownDevice(id)) }
    let shown = try contents.shown.compactMap { shown in
      try state.inbox.record(seq: shown.seq).map { ShownNotification(shown, $0) }
    }
    .filter { !$0.isIgnoredBroadcast }
    // The Live Activities of a channel show its newest broadcast, and nothing after its end.
    var newest: [String: Int] = [:]
    for notification in shown { newest[notification.channel ?? ""] = notification.shown.seq }
    var badges: [String: JSONValue] = [:]
    for notification in shown {
      if let badge = notification.badge { badges[notification.shown.bundleID] = badge }
    }
    let visible = shown.filter { notification in
      notification.isVisible && (notification.channel.map { newest[$0] == notification.shown.seq } ?? true)
    }
    return .json { writer in
      writer.member("device", id)
      writer.arrayMember("items") { writer in
        for notification in visible { writer.object(notification.write) }
      }
      writer.objectMember("badges") { writer in
        for (bundleID, badge) in badges.sorted(by: { $0.key < $1.key }) {
          writer.name(bundleID)
          badge.write(to: &writer)
        }
      }
      writer.arrayMember("stored") { writer in
        for push in contents.stored { writer.integer(push.seq) }
      }
    }
  }
}

/// A push that a device shows, with its record.
private struct ShownNotification {
  let shown: DeviceRegistry.ShownPush
  let record: Record

  init(_ shown: DeviceRegistry.ShownPush, _ record: Record) {
    self.shown = shown
    self.record = record
  }

  /// The channel of a broadcast; nil for a push.
  var channel: String? {
    record.kind == .broadcast ? record.headers.first { $0.name == "apns-channel-id" }?.value : nil
  }

  /// Whether it is a broadcast that a device ignores because of its payload. Such a push is not in the list of what is shown.
  var isIgnoredBroadcast: Bool {
    record.kind == .broadcast
      && record.body.withUnsafeBytes { ActivityContent(payload: $0, at: record.receivedAt) } == nil
  }

  /// The badge that the push sets; nil if it changes none.
  var badge: JSONValue? { value(Self.badgePointer) }

  /// Whether the device displays something: an alert, or a Live Activity that has not ended.
  var isVisible: Bool {
    if shown.activity != nil { return true }
    return channel == nil ? value(Self.alertPointer) != nil : value(Self.eventPointer) != .text("end")
  }

  private static let badgePointer = JSONPointer("/aps/badge")
  private static let alertPointer = JSONPointer("/aps/alert")
  private static let eventPointer = JSONPointer("/aps/event")

  private func value(_ pointer: JSONPointer?) -> JSONValue? {
    guard record.payloadProblem == nil else { return nil }
    return record.body.withUnsafeBytes { pointer?.value(in: $0) }
  }

  func write(to writer: inout JSONWriter) {
    writer.member("seq", record.name)
    writer.member("bundle_id", shown.bundleID)
    writer.member("environment", shown.environment.rawValue)
    writer.member("activity", shown.activity)
    writer.member("apns_id", record.apnsID)
    writer.member("push_type", record.pushType)
    writer.member("collapse_id", record.collapseID)
    writer.name("payload")
    if record.payloadProblem == nil { writer.verbatim(record.body) } else { writer.null() }
  }
}
