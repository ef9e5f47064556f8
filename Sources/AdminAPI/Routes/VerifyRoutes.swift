internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS
internal import NIOCore
internal import APNSMockNotation

/// The route that verifies a test's expectations.
struct VerifyRoutes: Sendable {
  let source: any InboxSource
  let waits: WaitLimit

  var routes: [Route] { [.post("/verify", verify)] }

  private func verify(_ request: Request, _ context: AdminContext) async throws -> Response {
    let body = try await RequestBody.bytes(of: request)
    if body.readableBytes > 0 { try RequestBody.type(of: request, among: [JSONBody.type]) }
    let json = body.readableBytes > 0 ? Array(body.readableBytesView) : Array("{}".utf8)
    var verification: Verification
    do {
      verification = try await QueryExecutor.run {
        try await source.inbox.repeatingAfterReset {
          try await Verification(searching: json, in: source.filterContext(source.inbox.snapshot()))
        }
      }
    } catch let failure as FileFailure {
      throw Problem(verification: failure)
    }
    if !source.receivesPushes {
      verification.timeout = .zero
      verification.settle = .zero
    }
    let slot = verification.timeout > .zero || verification.settle > .zero ? try waits.enter() : nil
    let memory = try Self.reserveMemory(for: verification, pushes: source.inbox.snapshot().count)
    defer { withExtendedLifetime((slot, memory)) {} }
    return try await QueryExecutor.run { [verification] in
      guard let report = try await source.verify(verification) else {
        throw Problem(
          status: .serviceUnavailable, kind: .stopping, detail: "the server stops before anything could be verified",
          hint: "Start it again, and verify while it runs.")
      }
      return .json(status: report.isPassed ? .ok : .preconditionFailed, report.write)
    }
  }

  /// Reserves what a verification of retries keeps of the inbox; at most half of the budget, so that one is always possible.
  ///
  /// - Parameter pushes: The number of pushes in the inbox.
  /// - Throws: `Problem` (503) if other requests use too much of the budget.
  static func reserveMemory(
    for verification: Verification, pushes: Int, in budget: MemoryBudget = .responses
  ) throws(Problem) -> MemoryBudget.Reservation? {
    guard verification.checksRetries else { return nil }
    let reservation = MemoryBudget.Reservation(in: budget)
    try reservation.grow(by: min(pushes * Verification.bytesPerAttempt, budget.limit / 2))
    return reservation
  }
}
