internal import APNSRules
internal import Devices
internal import Hummingbird
internal import Inbox
internal import MockAPNS
internal import NIOCore
internal import Notation

/// Routes for the delivery of accepted pushes: their delivery log, and what devices show and receive.
struct DeliveryRoutes: Sendable {
  let state: ServerState
  let waits: WaitLimit

  var routes: [Route] {
    [
      Route.get("/pushes/:id/delivery", show).onQueryExecutor, Route.get("/deliveries", list).onQueryExecutor,
      Route.get("/devices/:id/notifications", notifications).onQueryExecutor,
      .get("/devices/:id/notifications/stream", stream),
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
    if let other = parameters.all.first?.name {
      let guess = Spelling.suggestion(for: other, among: names)
      throw Problem.badRequest("the query has an unknown parameter \"\(other.prefix(80))\"", hint: guess + hint)
    }
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
    writer.member("seq", record.seq)
    writer.member("apns_id", record.apnsID)
    writer.member("apns_unique_id", state.uniqueID(of: record))
    writer.member("device", record.deviceToken.flatMap(state.devices.token)?.deviceID)
    writer.member("state", record.delivery?.text)
    writer.arrayMember("events") { writer in
      for entry in entries {
        writer.object { writer in
          writer.member("at", TimestampFormat.text(entry.time))
          writer.member("state", entry.state.text)
          if let device = entry.deviceID { writer.member("device", device) }
        }
      }
    }
    let isUnknown = entries.isEmpty && record.accepted
    writer.member(
      "message",
      isUnknown
        ? "The device token is not registered, so nothing is known about its delivery."
        : entries.isEmpty ? "The push was not accepted." : nil)
  }

  // MARK: - Notifications

  private func notifications(_ request: Request, _ context: AdminContext) throws -> Response {
    let id = context.parameters.get("id") ?? ""
    guard let contents = state.devices.contents(of: id) else { throw state.problem(.unknownDevice(id)) }
    let shown = contents.shown.compactMap { shown in
      state.inbox.record(seq: shown.seq).map { ShownNotification(shown, $0) }
    }
    // A Live Activity shows its newest update, and nothing after its end.
    var newest: [String: Int] = [:]
    for notification in shown { newest[notification.activity ?? ""] = notification.shown.seq }
    var badges: [String: JSONValue] = [:]
    for notification in shown {
      if let badge = notification.badge { badges[notification.shown.bundleID] = badge }
    }
    let visible = shown.filter { notification in
      notification.isVisible && (notification.activity.map { newest[$0] == notification.shown.seq } ?? true)
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

  private func stream(_ request: Request, _ context: AdminContext) throws -> Response {
    let id = context.parameters.get("id") ?? ""
    let slot = try waits.enter()
    let notifications: AsyncStream<DeliveryControl.Notification>
    do throws(DeviceError) {
      notifications = try state.deliveryControl.notifications(of: id)
    } catch {
      throw state.problem(error)
    }
    let channel = DisconnectCancellation.channel
    return Response(
      status: .ok, headers: [.contentType: "text/event-stream"],
      body: ResponseBody { writer in
        var body = writer
        let (pieces, feed) = AsyncStream.makeStream(
          of: ByteBuffer.self, bufferingPolicy: .bufferingNewest(DeliveryControl.listenerBuffer))
        let forwarding = Task {
          for await notification in notifications {
            feed.yield(ByteBuffer(notification, seq: notification.received.seq))
          }
          feed.yield(ByteBuffer(string: "event: end\ndata: {\"message\":\"the server stops\"}\n\n"))
          feed.finish()
        }
        let heartbeats = Task {
          while true {
            try await Task.sleep(for: EventRoutes.heartbeat)
            feed.yield(ByteBuffer(string: ":\n\n"))
          }
        }
        // If the client has already disconnected, the observer ends the stream at once.
        let observer = channel.map { DisconnectCancellation.observe($0) { feed.finish() } }
        defer {
          withExtendedLifetime(slot) {
            observer?.end()
            forwarding.cancel()
            heartbeats.cancel()
          }
        }
        try await body.write(ByteBuffer(string: ": apns-mock notifications of \(id)\n\n"))
        for await piece in pieces { try await body.write(piece) }
        try await body.finish(nil)
      })
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

  /// The device token or the channel of a Live Activity; nil for other notifications.
  var activity: String? {
    if record.kind == .broadcast { return record.headers.first { $0.name == "apns-channel-id" }?.value }
    return record.facts.pushType == .liveactivity ? record.deviceToken : nil
  }

  /// The badge that the push sets; nil if it changes none.
  var badge: JSONValue? { value(Self.badgePointer) }

  /// Whether the device displays something: an alert, or a Live Activity that has not ended.
  var isVisible: Bool {
    activity == nil ? value(Self.alertPointer) != nil : value(Self.eventPointer) != .text("end")
  }

  private static let badgePointer = JSONPointer("/aps/badge")
  private static let alertPointer = JSONPointer("/aps/alert")
  private static let eventPointer = JSONPointer("/aps/event")

  private func value(_ pointer: JSONPointer?) -> JSONValue? {
    guard record.payloadProblem == nil else { return nil }
    return record.body.withUnsafeBytes { pointer?.value(in: $0) }
  }

  func write(to writer: inout JSONWriter) {
    writer.member("seq", record.seq)
    writer.member("bundle_id", shown.bundleID)
    writer.member("environment", shown.environment.rawValue)
    record.writeNotification(to: &writer)
  }
}

extension Record {
  /// Writes the members of a push that concern its device.
  fileprivate func writeNotification(to writer: inout JSONWriter) {
    writer.member("apns_id", apnsID)
    writer.member("push_type", pushType)
    writer.member("collapse_id", collapseID)
    writer.name("payload")
    if payloadProblem == nil { body.withUnsafeBytes { writer.verbatim($0) } } else { writer.null() }
  }
}

extension ByteBuffer {
  /// Creates the event of a notification. Its payload fits `xcrun simctl push`: it names its app.
  ///
  /// - Parameter seq: The `seq` of the push.
  fileprivate init(_ notification: DeliveryControl.Notification, seq: Int) {
    let received = notification.received
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("seq", seq)
      writer.member("bundle_id", received.bundleID)
      writer.member("environment", received.environment.rawValue)
      writer.member("state", received.state.text)
      writer.member("at", TimestampFormat.text(received.time))
      writer.member("apns_id", notification.record?.apnsID)
      writer.member("push_type", notification.record?.pushType)
      writer.member("collapse_id", notification.record?.collapseID)
      writer.name("payload")
      if let payload = try? notification.record?.simulatorFile(for: received.bundleID) {
        payload.withUnsafeBytes { writer.verbatim($0) }
      } else {
        writer.null()
      }
    }
    self.init()
    writeString("event: notification\ndata: ")
    writeBytes(writer.bytes)
    writeString("\n\n")
  }
}
