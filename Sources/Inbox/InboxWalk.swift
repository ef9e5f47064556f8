/// Goes through the selected records of a snapshot in their order, some at a time, so that whoever has many to look at
/// can let others have their turn, or wait for a slow reader, in between.
public struct InboxWalk: Sendable {
  /// So many records come at once at most.
  private static let limit = 256
  /// So many are looked at for one step at most.
  private static let span = 1024

  private let records: RecordStorage
  private var rest: Selection
  private let end: Int
  /// All records up to this number were looked at.
  public private(set) var through: Int

  /// Begins before the first selected record.
  public init(_ snapshot: InboxSnapshot, _ selection: Selection) {
    let end = min(snapshot.lastSeq, selection.before == .min ? 0 : selection.before - 1)
    records = snapshot.records
    rest = selection
    self.end = end
    through = min(end, selection.after)
    skipGap()
  }

  /// The next records, possibly none of those that were looked at; nil when all were.
  public mutating func next() -> [Record]? {
    skipGap()
    guard through < end else { return nil }
    // What reads whole records takes long.
    let span = rest.filter.dearCount == 0 ? Self.span : rest.filter.sliceSize
    let stop = end - through > span ? through + span : end
    rest.after = through
    rest.before = stop == .max ? .max : stop + 1
    var found: [Record] = []
    records.forEach(in: rest) { record in
      found.append(copy record)
      return found.count < Self.limit
    }
    through = found.count == Self.limit ? found[found.count - 1].seq : stop
    return found
  }

  /// Numbers that nobody has any more cost no steps.
  private mutating func skipGap() {
    guard through < end else { return }
    var all = Selection()
    all.after = through
    var next = end + 1
    records.forEach(in: all) { record in
      next = record.seq
      return false
    }
    through = min(end, next - 1)
  }
}

extension Selection {
  /// Whether the record is one of those that are meant.
  public func contains(_ record: borrowing Record) -> Bool {
    record.seq > after && record.seq < before && filter.matches(record)
  }
}
