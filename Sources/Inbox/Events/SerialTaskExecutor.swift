internal import Dispatch

/// A task executor that runs its tasks on one thread, which may wait for a store. They take turns wherever they suspend.
///
/// Swift's cooperative thread pool has as many threads as the machine has cores, and also accepts connections and runs signal
/// handling, which a long query or a slow database would delay.
package final class SerialTaskExecutor: TaskExecutor {
  private let queue: DispatchQueue

  /// - Parameter label: The name of the thread's queue, for debuggers.
  package init(_ label: String) { queue = DispatchQueue(label: label) }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
