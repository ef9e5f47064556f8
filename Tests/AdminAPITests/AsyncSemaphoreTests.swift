import Foundation
import NIOConcurrencyHelpers
import APNSMockTestSupport
import Testing

@testable import APNSMockAdminAPI

@Suite struct AsyncSemaphoreTests {
  @Test func aLimitedNumberRunsAtATime() async throws {
    let semaphore = AsyncSemaphore(2)
    let running = NIOLockedValueBox((now: 0, most: 0, all: 0))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<50 {
        group.addTask {
          try await semaphore.withPermit {
            running.withLockedValue { running in
              running.now += 1
              running.all += 1
              running.most = max(running.most, running.now)
            }
            await Task.yield()
            running.withLockedValue { $0.now -= 1 }
          }
        }
      }
      try await group.waitForAll()
    }
    let (now, most, all) = running.withLockedValue { $0 }
    #expect(now == 0 && most <= 2 && all == 50)
  }

  @Test func aCancelledTaskLeavesTheQueue() async throws {
    let semaphore = AsyncSemaphore(1)
    let (released, release) = AsyncStream.makeStream(of: Void.self)
    let (entered, enter) = AsyncStream.makeStream(of: Void.self)
    let first = Task {
      try await semaphore.withPermit {
        enter.finish()
        for await _ in released {}
      }
    }
    for await _ in entered {}
    let second = Task { try await semaphore.withPermit { Issue.record("a cancelled task has run") } }
    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.value }
    release.finish()
    try await first.value
    // The permit is free again, also after an error.
    struct Failure: Error {}
    await #expect(throws: Failure.self) { try await semaphore.withPermit { throw Failure() } }
    #expect(try await semaphore.withPermit { 7 } == 7)
  }
}
