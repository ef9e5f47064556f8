internal import Hummingbird
internal import MockAPNS
internal import APNSMockNotation

/// Routes that show, freeze and advance the server clock.
struct ClockRoutes: Sendable {
  let state: ServerState

  var routes: [Route] { [.get("/clock", show), .put("/clock", set), .post("/clock/advance", advance)] }

  /// The modes that a client can set.
  private enum Mode: String, CaseIterable {
    case real, frozen
  }

  private func show(_ request: Request, _ context: AdminContext) -> Response { shown }

  private func set(_ request: Request, _ context: AdminContext) async throws -> Response {
    let body = try await JSONBody(request, allowing: ["mode", "now"])
    let now = try body.time("now")
    switch try body.choice("mode", Mode.self) {
    case .frozen: clock.freeze(at: now ?? state.clock.now)
    case .real where now == nil: clock.runReal()
    case .real:
      throw Problem.badRequest(
        "now requires mode frozen",
        hint: "Send mode frozen, omit now, or change the clock with /clock/advance.")
    case nil:
      throw Problem.badRequest("the body lacks mode", hint: "Use frozen, with or without now, or real.")
    }
    await state.deliveryControl.advance()
    return shown
  }

  private func advance(_ request: Request, _ context: AdminContext) async throws -> Response {
    let body = try await JSONBody(request, allowing: ["by"])
    let hint = "It must be a duration such as 90s, 20m or 1h30m; a negative one sets the clock back."
    let text = try body.required("by", hint: hint)
    guard let duration = DurationFormat.duration(text) else {
      throw Problem.badRequest("by cannot be \"\(text)\"", hint: hint)
    }
    clock.advance(by: duration)
    await state.deliveryControl.advance()
    return shown
  }

  private var clock: ServerClock { state.clock }

  private var shown: Response {
    let (mode, now) = (clock.mode, clock.now)
    let (offset, rejectsNewTokens) = (clock.machineOffset, state.rejectsNewTokens)
    return .json { writer in
      writer.member("mode", mode.rawValue)
      writer.member("now", TimestampFormat.text(now))
      writer.member("offset_ms", offset)
      writer.member("rejects_new_tokens", rejectsNewTokens)
    }
  }
}
