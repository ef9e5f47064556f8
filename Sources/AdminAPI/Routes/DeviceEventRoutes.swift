internal import APNSMockRules
internal import APNSMockDevices
internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS
internal import NIOCore
internal import APNSMockNotation

/// The streams of what happens on one device or on all: the pushes that they receive, and their Live Activities (server-sent
/// events; HTML Standard, section 9.2).
struct DeviceEventRoutes: Sendable {
  let state: ServerState
  let waits: WaitLimit

  var routes: [Route] {
    [.get("/devices/notifications/stream", streamAll), .get("/devices/:id/notifications/stream", stream)]
  }

  /// The number of events that are written at once.
  private static let batchSize = 64

  private func stream(_ request: Request, _ context: AdminContext) throws -> Response {
    let id = context.parameters.get("id") ?? ""
    let slot = try waits.enter()
    let reader: DeviceEventReader
    do throws(DeviceError) {
      reader = try state.deliveryControl.read(id)
    } catch {
      throw state.problem(error)
    }
    return response(reader, slot, preamble: "apns-mock notifications of \(id)")
  }

  private func streamAll(_ request: Request, _ context: AdminContext) throws -> Response {
    let (filter, pushType) = try Self.filter(request)
    let slot = try waits.enter()
    guard let reader = state.deliveryControl.readAll(filter) else {
      throw Problem(
        status: .serviceUnavailable,
        detail: "\(DeliveryControl.sharedListenerLimit) requests follow all devices, and no more may at once",
        hint: "Share one stream between the tests, or follow single devices.")
    }
    return response(reader, slot, preamble: "apns-mock notifications of all devices", pushType: pushType)
  }

  /// Returns the filter in the query of a request, and the push type of the pushes that are selected.
  private static func filter(_ request: Request) throws(Problem) -> (DeviceEventFilter, pushType: String?) {
    var parameters = try QueryParameters(request)
    var filter = DeviceEventFilter()
    filter.device = try parameters.remove("device").map { TextPattern($0, foldsCase: false) }
    filter.bundleID = try parameters.remove("bundle_id").map { TextPattern($0, foldsCase: false) }
    filter.environment = try parameters.remove("environment", PushEnvironment.self)
    let types = PushType.allCases.map(\.text)
    let type = try parameters.remove("push_type").map { name throws(Problem) in
      guard types.contains(name) else { throw .unknownValue(name, of: "push_type", among: types) }
      return name
    }
    if let names = try parameters.remove("event") {
      var kinds: Set<DeviceEvent.Kind> = []
      for name in names.split(separator: ",", omittingEmptySubsequences: false).map(String.init) {
        kinds.insert(try DeviceEvent.Kind.choice(name, of: "event"))
      }
      filter.kinds = kinds
    }
    try parameters.end(["device", "bundle_id", "environment", "push_type", "event"])
    return (filter, type)
  }

  // MARK: - Writing

  private func response(
    _ reader: DeviceEventReader, _ slot: WaitLimit.Slot, preamble: String, pushType: String? = nil
  ) -> Response {
    let channel = DisconnectCancellation.channel
    let reading = Reading(reader, state.deliveryControl)
    return Response(
      status: .ok, headers: [.contentType: "text/event-stream"],
      body: ResponseBody { writer in
        var body = writer
        // If the client has already disconnected, the observer ends the stream at once.
        let observer = channel.map { DisconnectCancellation.observe($0) { reader.stop() } }
        let heartbeats = Task {
          while true {
            try await Task.sleep(for: EventRoutes.heartbeat)
            reader.signalHeartbeat()
          }
        }
        defer {
          withExtendedLifetime((slot, reading)) {
            observer?.end()
            heartbeats.cancel()
          }
        }
        try await body.write(ByteBuffer(string: ": \(preamble)\n\n"))
        try await write(reader, pushType, to: &body)
        try await body.finish(nil)
      })
  }

  private func write(
    _ reader: DeviceEventReader, _ pushType: String?, to body: inout any ResponseBodyWriter
  ) async throws {
    var lastSent = ContinuousClock.now
    for await _ in reader.signals {
      while let batch = reader.next(Self.batchSize) {
        let buffer = try await QueryExecutor.step {
          var buffer = ByteBuffer()
          if batch.missed > 0 { buffer.writeGap(of: batch.missed) }
          for event in batch.events {
            // When an event is written, not when it happens: a push waits for that.
            // One that cannot be read is like one that was removed: the stream goes on.
            let record = event.seq.flatMap { try? state.inbox.record(seq: $0) }
            if let pushType, record?.facts.pushType?.text != pushType { continue }
            buffer.write(event, record)
          }
          return buffer
        }
        guard buffer.readableBytes > 0 else { continue }
        try await body.write(buffer)
        lastSent = .now
      }
      if ContinuousClock.now - lastSent >= EventRoutes.heartbeat {
        try await body.write(ByteBuffer(string: ":\n\n"))
        lastSent = .now
      }
    }
    if !Task.isCancelled {
      try await body.write(ByteBuffer(string: "event: end\ndata: {\"message\":\"the server stops\"}\n\n"))
    }
  }

  /// Ends a reader when it is released, also if its response was never written.
  private final class Reading: Sendable {
    private let reader: DeviceEventReader
    private let control: DeliveryControl

    init(_ reader: DeviceEventReader, _ control: DeliveryControl) {
      self.reader = reader
      self.control = control
    }

    deinit { control.end(reader) }
  }
}

extension ByteBuffer {
  fileprivate mutating func writeGap(of missed: Int) {
    writeString(
      "event: gap\ndata: {\"missed\":\(missed),\"message\":\"the client reads too slowly: events are missing here\"}\n\n"
    )
  }

  /// Writes an event. The payload of a notification fits `xcrun simctl push`: it names its app.
  ///
  /// - Parameter record: The record of the push that caused the event; nil if none did or it was removed.
  fileprivate mutating func write(_ event: DeviceEvent, _ record: Record?) {
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("event", event.kind.rawValue)
      writer.member("device", event.deviceID)
      writer.member("seq", event.seq)
      writer.member("bundle_id", event.bundleID)
      writer.member("environment", event.environment.rawValue)
      writer.member("at", TimestampFormat.text(event.time))
      guard event.kind == .notification else { return writer.writeActivity(event) }
      writer.member("state", event.state?.text)
      writer.member("apns_id", record?.apnsID)
      writer.member("push_type", record?.pushType)
      writer.member("collapse_id", record?.collapseID)
      writer.name("payload")
      if let payload = try? record?.simulatorFile(for: event.bundleID) {
        writer.verbatim(payload)
      } else {
        writer.null()
      }
    }
    writeString("event: \(event.kind.rawValue)\ndata: ")
    writeBytes(writer.bytes)
    writeString("\n\n")
  }
}

extension JSONWriter {
  fileprivate mutating func writeActivity(_ event: DeviceEvent) {
    member("token", event.token)
    member("attributes_type", event.attributesType)
    if event.kind == .activityRotated { member("former_token", event.formerToken) }
    if event.kind == .activityEnded { member("dismissed_at", event.dismissedAt.flatMap(TimestampFormat.text)) }
  }
}
