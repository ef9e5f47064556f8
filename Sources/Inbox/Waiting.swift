internal import Notation

/// What came of a wait.
public struct WaitAnswer: Sendable {
  /// Whether what was waited for is there.
  public let isSatisfied: Bool
  /// Whether the wait was cut short: the inbox closes, or whoever waited went away.
  public let isAbandoned: Bool
  /// How many records match.
  public let matched: Int
  /// They themselves, the first `PageQuery.maxLimit` of those that are still in the inbox, in their order.
  public let items: [Record]
  /// All records up to this number were looked at: the cursor for the next wait.
  public let seq: Int
  /// What was waited for and what came, in words.
  public let message: String
  /// Records that nearly match, the nearest first, when too few do.
  public let nearest: [NearMiss]
  /// How many records the limits have pushed out since the inbox was last emptied.
  public let evicted: Int
  /// Whether no record that could count was pushed out before it was looked at.
  public let isComplete: Bool
}

/// A record that some parts of a filter match and others do not.
public struct NearMiss: Sendable {
  /// The record.
  public let record: Record
  /// The names of the fields that match.
  public let met: [String]
  /// The names of the fields that do not.
  public let missed: [String]
}

extension Inbox {
  /// Waits until so many records match as are wanted, or the time is up.
  ///
  /// A record counts when it matches as it is: a pending one may begin to match, or cease to, with its end. Records that
  /// are removed or pushed out later stay counted; emptying the inbox makes the wait begin anew.
  ///
  /// The time is the machine's. A cancelled task gets its answer at once.
  public func wait(for query: WaitQuery) async -> WaitAnswer {
    let (ending, tally, seen) = await Waiter(query, in: self).run()
    let snapshot = snapshot()
    return WaitAnswer(
      isSatisfied: ending == .satisfied, isAbandoned: ending == .abandoned, matched: tally.matched.count,
      items: tally.matched.prefix(PageQuery.maxLimit).compactMap(record), seq: seen,
      message: query.message(ending, tally), nearest: ending == .timedOut ? query.nearMisses(in: snapshot) : [],
      evicted: snapshot.evicted, isComplete: tally.isComplete)
  }

  /// How many hear of each change now: waits, and the log of events while somebody follows it.
  public var listenerCount: Int { watch.listenerCount }

  /// How many wait for pushes now.
  public var waiterCount: Int { watch.waiterCount }

  /// Ends everybody's waiting, now and later: the server stops.
  public func endWaiting() { watch.close(self) }
}

extension WaitQuery {
  /// What was waited for and what came.
  fileprivate func message(_ ending: Waiter.Ending, _ tally: WaitTally) -> String {
    let found = tally.matched.isEmpty ? "no push matches" : Self.counted(tally.matched.count)
    switch ending {
    case .satisfied:
      return settle > .zero ? "\(found), and nothing changed for \(WrittenDuration.text(settle))" : found
    case .abandoned: return "the wait was cut short when \(found)"
    case .hopeless, .timedOut:
      let time = ending == .timedOut ? " after \(WrittenDuration.text(timeout))" : ""
      var message = "wanted \(count), and \(found)\(time)"
      if ending == .timedOut, tally.isWanted {
        message += ", but it was never quiet for \(WrittenDuration.text(settle))"
      }
      if !tally.isComplete {
        message += "; inconclusive: the inbox's limits pushed out older pushes before they were looked at"
        message += " (give after, empty the inbox first, or raise --max-records or --max-bytes)"
      }
      return message
    }
  }

  private static func counted(_ count: Int) -> String { count == 1 ? "1 push matches" : "\(count) pushes match" }

  /// At most so many records are looked at for near misses, the newest.
  private static let looked = 10_000

  /// The three records that match the most parts of the filter, the newest first among equals. None for a filter of a
  /// single part, where nothing comes near.
  fileprivate func nearMisses(in snapshot: InboxSnapshot) -> [NearMiss] {
    let filter = selection.filter
    guard filter.fieldCount > 1 else { return [] }
    var window = Selection()
    window.after = max(selection.after, snapshot.lastSeq - Self.looked)
    window.before = selection.before
    var nearest: [NearMiss] = []
    snapshot.records.forEach(in: window, newestFirst: true) { record in
      let (met, missed) = filter.fields(of: record)
      guard !met.isEmpty, !missed.isEmpty, nearest.count < 3 || nearest[2].met.count < met.count else { return true }
      let place = nearest.firstIndex { $0.met.count < met.count } ?? nearest.endIndex
      nearest.insert(NearMiss(record: copy record, met: met, missed: missed), at: place)
      if nearest.count > 3 { nearest.removeLast() }
      return true
    }
    return nearest
  }
}
