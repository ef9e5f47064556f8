import Hummingbird
import APNSMockInbox
import Testing

@testable import APNSMockAdminAPI

@Suite struct MemoryBudgetTests {
  @Test func requestsShareTheBudget() throws {
    let budget = MemoryBudget(3 << 20, of: "tests")
    let first = MemoryBudget.Reservation(in: budget)
    try first.grow(by: 1 << 20)
    try first.grow(by: 1 << 20)
    var second: MemoryBudget.Reservation? = MemoryBudget.Reservation(in: budget)
    try second?.grow(by: 1 << 20)
    let third = MemoryBudget.Reservation(in: budget)
    let problem = #expect(throws: Problem.self) { try third.grow(by: 1) }
    #expect(problem?.status == .serviceUnavailable)
    #expect(problem?.detail == "tests use all of their 3 MiB")
    #expect(problem?.headers[.retryAfter] == "1")
    // What failed reserves nothing, and what ends gives back all of its memory.
    second = nil
    try third.grow(by: 1 << 20)
    #expect(throws: Problem.self) { try third.grow(by: 1) }
    withExtendedLifetime(first) {}
  }

  @Test func verificationsOfRetriesShareABudget() throws {
    let budget = MemoryBudget(250_000, of: "tests")
    let retries = try Verification(json: Array(#"{"expect":[{"retries":{"max":3}}]}"#.utf8))
    let first = try VerifyRoutes.reserveMemory(for: retries, pushes: 1000, in: budget)
    var second = try VerifyRoutes.reserveMemory(for: retries, pushes: 1000, in: budget)
    #expect(throws: Problem.self) { try VerifyRoutes.reserveMemory(for: retries, pushes: 1000, in: budget) }
    // Half of the budget is enough for any inbox.
    second = nil
    second = try VerifyRoutes.reserveMemory(for: retries, pushes: 1_000_000, in: budget)
    let other = try Verification(json: Array(#"{"expect":[{"count":3}]}"#.utf8))
    #expect(try VerifyRoutes.reserveMemory(for: other, pushes: 1_000_000, in: budget) == nil)
    withExtendedLifetime((first, second)) {}
  }

  @Test func largeResponsesAreRefusedWhenTheBudgetIsUsed() throws {
    let size = 40 << 20
    let bytes = [UInt8](repeating: 0, count: size)
    let responses = (1...3).map { _ in Response.bytes(bytes, type: "text/plain") }
    #expect(responses.map(\.status.code) == [200, 200, 503])
    #expect(Response.bytes([1], type: "text/plain").status == .ok)
  }
}
