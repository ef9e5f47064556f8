import Dispatch
import APNSMockInbox
import Testing

/// Which threads may wait for a store.
@Suite struct BlockingCheckTests {
  @Test func cooperativeThreadsAndEventLoopsMustNotWait() async {
    #expect(!BlockingCheck.threadMayWait(isEventLoop: false), "a cooperative thread")
    await withTaskExecutorPreference(SerialTaskExecutor("test")) {
      #expect(BlockingCheck.threadMayWait(isEventLoop: false), "a thread of an executor of our own")
      #expect(!BlockingCheck.threadMayWait(isEventLoop: true), "an event loop that runs a task")
    }
    let (thread, eventLoop) = await withCheckedContinuation { continuation in
      DispatchQueue(label: "test").async {
        continuation.resume(
          returning: (
            BlockingCheck.threadMayWait(isEventLoop: false), BlockingCheck.threadMayWait(isEventLoop: true)
          ))
      }
    }
    #expect(thread && !eventLoop)
  }

  #if CHECKS_BLOCKING
    @Test func aWaitOnACooperativeThreadEndsTheProcess() async {
      await #expect(processExitsWith: .failure) {
        BlockingCheck.begin { false }
        BlockingCheck.checkThread()
      }
    }

    @Test func aWaitOnAThreadOfOurOwnDoesNot() async {
      await #expect(processExitsWith: .success) {
        BlockingCheck.begin { false }
        await withTaskExecutorPreference(SerialTaskExecutor("test")) { BlockingCheck.checkThread() }
      }
    }
  #endif
}
