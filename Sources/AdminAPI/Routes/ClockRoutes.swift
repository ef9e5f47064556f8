internal import APNSMockInbox
internal import Hummingbird
internal import MockAPNS
internal import APNSMockNotation

/// How the clock is to run.
struct ClockRequest {
  /// The modes that a client can set.
  enum Mode: String, CaseIterable {
    case real, frozen
  }

  var mode = Mode.real
  var now: Int64?

  static let schema = MapSchema(
    "ClockRequest", ClockRequest(),
    .required("mode", \.mode, .word, example: "frozen", "Whether the clock runs."),
    .optional("now", \.now, .time, default: "the present time of the clock", "The time for `frozen`."))
}

/// The time to advance the clock by.
struct AdvanceRequest {
  var duration = Duration.zero

  static let schema = MapSchema(
    "AdvanceRequest", AdvanceRequest(),
    .required(
      "by", \.duration, .signed, example: "90s, 20m or 1h30m", "The duration; a negative one sets the clock back."))
}

extension Schema<Duration> {
  /// A duration, which may be negative.
  fileprivate static let signed = Schema(
    form: .duration(isPositive: false),
    parse: { parser, node in
      guard let scalar = parser.parseScalar(node, as: .text) else { return nil }
      if let duration = DurationFormat.duration(scalar.text) { return duration }
      parser.failValue(
        node, scalar.text, "It must be a duration such as 90s, 20m or 1h30m; a negative one sets the clock back.")
      return nil
    }, write: duration.write)
}

/// Routes that show, freeze and advance the server clock.
struct ClockRoutes: Sendable {
  let state: ServerState

  var routes: [Route] { [.get("/clock", show), .put("/clock", set), .post("/clock/advance", advance)] }

  private func show(_ request: Request, _ context: AdminContext) -> Response { .json(write) }

  private func set(_ request: Request, _ context: AdminContext) async throws -> Response {
    let body = try await JSONBody(request).parse(ClockRequest.schema.parse)
    switch body.mode {
    case .frozen: clock.freeze(at: body.now ?? state.clock.now)
    case .real where body.now == nil: clock.runReal()
    case .real:
      throw Problem.badRequest(
        "now requires mode frozen",
        hint: "Send mode frozen, omit now, or change the clock with /clock/advance.")
    }
    state.inbox.runs.note("the clock was set: \(clock.mode.rawValue), \(TimestampFormat.text(clock.now) ?? "")")
    return await changed()
  }

  private func advance(_ request: Request, _ context: AdminContext) async throws -> Response {
    let duration = try await JSONBody(request).parse(AdvanceRequest.schema.parse).duration
    clock.advance(by: duration)
    state.inbox.runs.note("the clock was advanced by \(DurationFormat.text(duration))")
    return await changed()
  }

  private var clock: ServerClock { state.clock }

  /// Delivers what is due by the changed clock, and reports the change.
  private func changed() async -> Response {
    await state.deliveryControl.advance()
    state.events.append(.clock, write)
    return .json(write)
  }

  private func write(_ writer: inout JSONWriter) {
    writer.member("mode", clock.mode.rawValue)
    writer.member("now", TimestampFormat.text(clock.now))
    writer.member("offset_ms", clock.machineOffset)
    writer.member("rejects_new_tokens", state.rejectsNewTokens)
  }
}
