internal import APNSMockRules

/// Iterates over the selected records of a snapshot in small groups, so that the caller can suspend or wait for a
/// slow reader in between.
package struct InboxIterator: Sendable {
  /// The maximum number of records returned in one step.
  private static let limit = 256
  /// The size of the records after which a step ends, in bytes.
  private static let maxBytes = 256 << 10

  private let records: SnapshotRecords
  private let selection: Selection
  private let end: Int
  /// The parts that were not examined completely; nil before the first step.
  private var rest: ArraySlice<RecordSlice>?
  /// All records up to this `seq` were examined.
  package private(set) var through: Int

  /// Creates an iteration that begins with the first selected record.
  package init(_ snapshot: InboxSnapshot, _ selection: Selection) {
    end = min(snapshot.lastSeq, selection.before == .min ? 0 : selection.before - 1)
    records = snapshot.records
    self.selection = selection
    through = min(end, selection.after)
  }

  /// Returns the next matching records, possibly none; nil when all records were examined.
  ///
  /// - Throws: `StoreUnavailable` if the store cannot be read, so that records are missing.
  package mutating func next() throws(StoreUnavailable) -> [Record]? {
    if rest == nil {
      rest = try records.slices(of: selection)[...]
      skipGap()
    }
    guard let slice = rest?.first else { return nil }
    var part = slice.part(of: selection)
    part.after = max(part.after, through)
    var found: [Record] = []
    var bytes = 0
    var isFull = false
    try records.forEach(in: part) { record in
      found.append(copy record)
      bytes += RecordStorage.cost(record)
      isFull = found.count == Self.limit || bytes >= Self.maxBytes
      return !isFull
    }
    if isFull, let last = found.last {
      through = last.seq
    } else {
      rest?.removeFirst()
      through = max(through, min(end, slice.before - 1))
    }
    skipGap()
    return found
  }

  /// Skips `seq` values without records.
  private mutating func skipGap() {
    through = min(end, max(through, rest?.first?.after ?? end))
  }
}

extension Selection {
  /// Returns whether the record is selected.
  package func contains(_ record: borrowing Record) -> Bool {
    record.seq > after && record.seq < before && (!isOfPushesOnly || record.kind == .push) && filter.matches(record)
  }
}
