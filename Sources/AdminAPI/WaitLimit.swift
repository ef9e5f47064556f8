internal import Hummingbird
internal import MockAPNS
internal import NIOConcurrencyHelpers

/// A limit on the admin requests that wait for pushes or follow events, so that connections remain for other
/// requests.
final class WaitLimit: Sendable {
  /// A waiting request. It counts until this object is released.
  final class Slot: Sendable {
    private let limit: WaitLimit

    fileprivate init(_ limit: WaitLimit) { self.limit = limit }

    deinit { limit.count.withLockedValue { $0 -= 1 } }
  }

  /// The maximum number of waiting requests: half of the connections to the admin listener.
  let most: Int
  private let count = NIOLockedValueBox(0)

  init(most: Int = max(1, Descriptors.forAdministration / 2)) { self.most = most }

  /// Counts a request that is about to wait.
  ///
  /// - Throws: `Problem` (503) if the limit is reached.
  func enter() throws(Problem) -> Slot {
    let isFull = count.withLockedValue { count in
      guard count < most else { return true }
      count += 1
      return false
    }
    guard !isFull else {
      throw Problem(
        status: .serviceUnavailable,
        detail: "\(most) requests wait for pushes or follow events, and no more may at once",
        hint: """
          Retry when one of them has finished, wait for several pushes in one request, or start the server with a higher \
          limit of open files (`ulimit -n`).
          """)
    }
    return Slot(self)
  }
}
