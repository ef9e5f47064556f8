internal import Hummingbird
internal import MockAPNS
internal import Notation

/// All faults at once: halting them and letting them go on. What is selected stays.
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
