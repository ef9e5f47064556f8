internal import Hummingbird
internal import MockAPNS
internal import Notation

/// Routes that pause and resume fault injection. The active profile and rules are kept.
struct FaultRoutes: Sendable {
  let faults: FaultControl

  var routes: [Route] {
    [
      .post("/faults/halt") { request, _ in try await halt(true, request) },
      .post("/faults/resume") { request, _ in try await halt(false, request) },
    ]
  }

  private func halt(_ isHalted: Bool, _ request: Request) async throws -> Response {
    _ = try await JSONBody(request, allowing: [])
    faults.halt(isHalted)
    return .json { $0.member("halted", isHalted) }
  }
}
