internal import CAPNSMockMemory
internal import Dispatch
internal import HTTPTypes
internal import Synchronization

/// Memory that concurrent requests share. A request reserves memory before it uses it, so that no number of clients can
/// exhaust the process.
final class MemoryBudget: Sendable {
  /// The bodies of requests, from their first byte until the response is made.
  static let bodies = MemoryBudget(128 << 20, of: "the bodies of requests")
  /// Responses that are made in memory, until the client has read nearly all of them, and what verifications of retries keep.
  static let responses = MemoryBudget(
    96 << 20, of: "responses that clients have not read yet, and verifications of retries,")

  /// Reserved memory. It is given back when this object is released.
  final class Reservation: Sendable {
    private let budget: MemoryBudget
    private let size = Atomic(0)

    /// Reserves no memory yet.
    init(in budget: MemoryBudget) { self.budget = budget }

    deinit { budget.giveBack(size.load(ordering: .relaxed)) }

    /// Reserves further memory.
    ///
    /// - Throws: `Problem` (503) if other requests use too much of the budget. What was reserved before stays reserved.
    func grow(by bytes: Int) throws(Problem) {
      try budget.take(bytes)
      size.add(bytes, ordering: .relaxed)
    }
  }

  /// What the current request has reserved for its body.
  @TaskLocal static var body: Reservation?

  /// The amount of returned memory, in bytes, after which free memory is given back to the system.
  private static let trimThreshold = 8 << 20
  /// The delay before that, during which other requests may end.
  private static let trimDelay = DispatchTimeInterval.seconds(2)

  /// The size in bytes.
  let limit: Int
  private let purpose: String
  private let used = Atomic(0)
  private let returned = Atomic(0)

  /// - Parameters:
  ///   - limit: The size in bytes.
  ///   - purpose: What the memory is used for, for error messages.
  init(_ limit: Int, of purpose: String) {
    self.limit = limit
    self.purpose = purpose
  }

  private func take(_ bytes: Int) throws(Problem) {
    guard used.add(bytes, ordering: .relaxed).newValue > limit else { return }
    used.subtract(bytes, ordering: .relaxed)
    throw Problem(
      status: .serviceUnavailable, detail: "\(purpose) use all of their \(limit >> 20) MiB",
      hint: "Repeat the request after a second. Send fewer large requests at once, and read the responses.",
      headers: [.retryAfter: "1"])
  }

  private func giveBack(_ bytes: Int) {
    guard bytes > 0 else { return }
    used.subtract(bytes, ordering: .relaxed)
    let (before, after) = returned.add(bytes, ordering: .relaxed)
    if before < Self.trimThreshold, after >= Self.trimThreshold {
      Self.trim { self.returned.store(0, ordering: .relaxed) }
    }
  }

  /// Gives free memory back to the system, soon.
  ///
  /// glibc gives back only the free memory at the end of an arena. Measured: 300 clients that disconnected without
  /// reading their pages of 1,000 pushes leave 28 MiB without this, 4 MiB with it.
  ///
  /// - Parameter willTrim: Called before; memory that is freed later needs another call.
  static func trim(_ willTrim: @escaping @Sendable () -> Void) {
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + trimDelay) {
      willTrim()
      apns_return_freed_memory()
    }
  }
}
