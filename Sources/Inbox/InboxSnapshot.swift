internal import Notation

/// What was in the inbox at one moment. Copying it costs nothing; it keeps the records alive that it shows.
public struct InboxSnapshot: Sendable {
  let records: RecordStorage
  /// The number of the newest record there ever was; 0 before the first.
  public let lastSeq: Int
  /// How many records the limits have pushed out since the inbox was last emptied.
  public let evicted: Int
  let lastEvicted: Int

  /// How many records there are.
  public var count: Int { records.count }
  /// What they take in memory, in bytes.
  public var bytes: Int { records.bytes }

  /// Whether no record with a number above `seq` was pushed out by the limits.
  public func isComplete(after seq: Int) -> Bool { lastEvicted <= seq }

  /// One page of the records that `query` asks for.
  public func page(_ query: PageQuery) -> InboxPage {
    var items: [Record] = []
    var matched = 0
    records.forEach(in: query.selection, newestFirst: query.order == .descending) { record in
      matched += 1
      if items.count < query.limit { items.append(copy record) }
      return true
    }
    return InboxPage(
      items: items, next: matched > items.count ? items.last?.seq : nil, matched: matched, total: records.count,
      evicted: evicted, isComplete: isComplete(after: query.selection.after))
  }

  /// All attempts with this `apns-id`, compared without case, in the order they came.
  public func attempts(apnsID: String) -> [Record] {
    let wanted = TextPattern(literal: apnsID)
    var found: [Record] = []
    records.forEach(in: Selection()) { record in
      if record.withID({ $0.map(wanted.matches) ?? false }) { found.append(copy record) }
      return true
    }
    return found
  }
}

/// One page of an inbox.
public struct InboxPage: Sendable {
  /// The records, in the order that was asked for.
  public let items: [Record]
  /// The cursor for the next page: `after` in ascending order, `before` in descending order. Nil on the last page.
  public let next: Int?
  /// How many records between the cursors match, on this page or not.
  public let matched: Int
  /// How many records the inbox holds.
  public let total: Int
  /// How many records the limits have pushed out since the inbox was last emptied.
  public let evicted: Int
  /// Whether no record after the cursor was pushed out, so that nothing can be missing.
  public let isComplete: Bool
}
