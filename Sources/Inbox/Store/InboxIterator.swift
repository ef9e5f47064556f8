internal import APNSRules

/// Iterates over the selected records of a snapshot in small groups, so that the caller can suspend or wait for a
/// slow reader in between.
package struct InboxIterator: Sendable {
  /// The maximum number of records returned in one step.
  private static let limit = 256
  /// The maximum number of records examined in one step.
  private static let span = 1024

  private let records: RecordStorage
  private var rest: Selection
  private let end: Int
  /// All records up to this `seq` were examined.
  package private(set) var through: Int

  /// Creates an iteration that begins with the first selected record.
  package init(_ snapshot: InboxSnapshot, _ selection: Selection) {
    let end = min(snapshot.lastSeq, selection.before == .min ? 0 : selection.before - 1)
    records = snapshot.records
    rest = selection
    self.end = end
    through = min(end, selection.after)
    skipGap()
  }

  /// Returns the next matching records, possibly none; nil when all records were examined.
  package mutating func next() -> [Record]? {
    skipGap()
    guard through < end else { return nil }
    // Conditions that read whole records take long.
    let span = rest.filter.expensiveConditionCount == 0 ? Self.span : rest.filter.sliceSize
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

  /// Skips `seq` values without records, so that they cost no steps.
  private mutating func skipGap() {
    guard through < end else { return }
    var all = Selection.allKinds
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
  /// Returns whether the record is selected.
  package func contains(_ record: borrowing Record) -> Bool {
    record.seq > after && record.seq < before && (!isOfPushesOnly || record.kind == .push) && filter.matches(record)
  }
}
