package import APNSMockRules
internal import APNSMockNotation
internal import NIOConcurrencyHelpers

/// The pushes of runs that resets of the inbox have removed, for the reports.
struct RunArchive: Sendable {
  private(set) var records = RecordStorage()
  /// The findings and the lost pushes among them, as they were known before the reset.
  private(set) var findings: [Finding] = []
  private(set) var lost: [Int] = []
  /// The number of pushes that were dropped because there were too many, and the highest `seq` among them.
  private(set) var dropped = 0
  private(set) var droppedThrough = 0

  /// Adds pushes in ascending order, without those it has, and drops the oldest beyond the limits of the inbox.
  mutating func add(_ removed: [Record], findings: [Finding], lost: [Int], maxRecords: Int, maxBytes: Int) {
    // A reset that failed and is repeated has added its pushes before.
    let added = removed.filter { records.record($0.seq) == nil }
    guard let oldest = added.first?.seq else { return }
    // Another test may have reset its pushes, which arrived between these.
    var rest = removeRecords(after: oldest)[...]
    for record in added {
      while let next = rest.first, next.seq < record.seq {
        records.append(next)
        rest.removeFirst()
      }
      var copy = record
      // Otherwise a few records would keep the memory of all their neighbors.
      copy.move(to: .ofOne())
      records.append(copy)
    }
    for record in rest { records.append(record) }
    let seqs = Set(added.map(\.seq))
    self.findings += findings.filter { seqs.contains($0.seq) }
    self.lost += lost.filter { seqs.contains($0) }
    while records.count > maxRecords || records.bytes > maxBytes, let seq = records.removeFirst() {
      addDropped(1, through: seq)
    }
    guard let first = records.first, dropped > 0 else { return }
    self.findings.removeAll { $0.seq < first }
    self.lost.removeAll { $0 < first }
  }

  /// Counts pushes that are not kept.
  mutating func addDropped(_ count: Int, through seq: Int) {
    dropped += count
    droppedThrough = max(droppedThrough, seq)
  }

  /// Counts the pushes that an inbox, which is about to be emptied, has evicted, and those that only its store has.
  mutating func addDropped(of snapshot: InboxSnapshot) {
    addDropped(snapshot.evicted, through: snapshot.lastEvicted)
    addDropped(
      snapshot.count - snapshot.records.recent.count, through: snapshot.records.recent.first.map { $0 - 1 } ?? 0)
  }

  /// Returns how many of the dropped pushes belonged to each run, which only their numbers say. Those of several runs that were
  /// open at the same time count for the first of them.
  ///
  /// - Parameter snapshot: The inbox, which has dropped pushes too.
  func dropped(of runs: [TestRun], _ snapshot: InboxSnapshot) -> [String: Int] {
    var (rest, counts) = (dropped + snapshot.evicted, [String: Int]())
    let last = max(droppedThrough, snapshot.lastEvicted)
    for run in runs where run.seqs == nil && run.server == nil {
      let count = min(rest, min(last, run.through ?? last) - run.after)
      guard count > 0 else { continue }
      counts[run.id] = count
      rest -= count
    }
    return counts
  }

  /// Removes and returns the records with a larger `seq`.
  private mutating func removeRecords(after seq: Int) -> [Record] {
    var removed: [Record] = []
    guard records.last ?? 0 > seq else { return removed }
    var later = Selection.allKinds
    later.after = seq
    records.forEach(in: later) { record in
      removed.append(copy record)
      return true
    }
    _ = records.remove(removed.map(\.seq))
    return removed
  }
}

/// The pushes of runs, of resets and of the inbox, with what was found about them.
package struct RunRecords: Sendable {
  /// The pushes that resets removed.
  let archived: InboxSnapshot
  /// The pushes in the inbox. While a reset runs, and after one that failed, some are among both.
  let present: InboxSnapshot
  /// The part of the inbox in which pushes of the runs can be.
  let selection: Selection
  /// The findings by their push.
  package let findings: [PushName: [Finding]]
  /// The `seq` of the last attempts of the pushes that were neither accepted nor rejected for good.
  package let lost: [Int]
  /// The number of pushes that were dropped because the memory is limited, and of those the number of each run.
  let dropped: (all: Int, ofRuns: [String: Int])
  /// The runs and the attribution of the pushes.
  package private(set) var runs: [TestRun]
  package let attribution: RunAttribution
  /// Whether the findings are those of all present pushes.
  package let hasAllFindings: Bool
}

/// Iterates over the pushes of runs, each once and in ascending order, in small groups.
package struct RunRecordsIterator: Sendable {
  private var archived: InboxIterator
  private var present: InboxIterator
  /// The records of each that were read, but not returned.
  private var archivedRest: ArraySlice<Record> = []
  private var presentRest: ArraySlice<Record> = []

  /// Creates an iteration that begins with the first push.
  init(_ records: RunRecords) {
    archived = InboxIterator(records.archived, .allKinds)
    present = InboxIterator(records.present, records.selection)
  }

  /// Returns the next pushes; nil after the last.
  ///
  /// - Throws: `StoreUnavailable` if the store cannot be read, so that records are missing.
  package mutating func next() throws(StoreUnavailable) -> [Record]? {
    while archivedRest.isEmpty, let group = try archived.next() { archivedRest = group[...] }
    while presentRest.isEmpty, let group = try present.next() { presentRest = group[...] }
    // One that is empty has ended.
    if archivedRest.isEmpty || presentRest.isEmpty {
      let group = Array(archivedRest.isEmpty ? presentRest : archivedRest)
      (archivedRest, presentRest) = ([], [])
      return group.isEmpty ? nil : group
    }
    var group: [Record] = []
    while let former = archivedRest.first, let record = presentRest.first {
      if former.seq <= record.seq { archivedRest.removeFirst() }
      if former.seq < record.seq {
        group.append(former)
      } else {
        group.append(record)
        presentRest.removeFirst()
      }
    }
    return group
  }
}

extension RunRecords {
  /// Returns an iterator over the pushes.
  package func makeIterator() -> RunRecordsIterator { RunRecordsIterator(self) }

  /// Returns the same pushes without a run that has none, if it is beside others.
  ///
  /// - Parameter ids: The runs that count as others.
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  package func leavingOutEmpty(_ run: String, of ids: Set<String>) throws(StoreUnavailable) -> RunRecords {
    guard ids.count > 1, missing(of: [run]) == 0 else { return self }
    var iterator = makeIterator()
    while let group = try iterator.next() {
      if group.contains(where: { attribution.owner(of: $0)?.run == run }) { return self }
    }
    var copy = self
    copy.runs.removeAll { $0.id == run }
    return copy
  }

  /// Returns the number of pushes that belong to runs, but are not among these; nil if it is unknown.
  ///
  /// - Parameter ids: The runs; nil for all, and the pushes of none.
  package func missing(of ids: Set<String>? = nil) -> Int? {
    var count = ids == nil ? dropped.all : 0
    for run in runs where ids?.contains(run.id) ?? true {
      guard let missing = run.missing else { return nil }
      count += missing + (ids == nil ? 0 : dropped.ofRuns[run.id] ?? 0)
    }
    return count
  }
}

extension Inbox {
  /// Keeps the pushes of runs, which a reset is about to remove, for the reports.
  ///
  /// - Parameters:
  ///   - selection: The pushes to remove.
  ///   - rulebook: The rules that determine the findings.
  package func archiveForRuns(_ selection: Selection, by rulebook: Rulebook) {
    let attribution = runs.attribution
    guard !attribution.isEmpty else { return }
    let snapshot = snapshot()
    // A store that cannot be read loses them for the report.
    let findings = (try? self.findings(by: rulebook, in: selection).findings) ?? []
    var removed: [Record] = []
    snapshot.records.recent.forEach(in: selection) { record in
      if attribution.owner(of: record) != nil { removed.append(copy record) }
      return true
    }
    let seqs = Set(removed.map(\.seq))
    let lost = (try? self.seqs(analyzer.unresolved, after: 0))?.filter(seqs.contains) ?? []
    runs.state.withLockedValue { state in
      state.archive.add(
        removed, findings: findings.filter { seqs.contains($0.seq) }, lost: lost, maxRecords: maxRecords,
        maxBytes: maxBytes)
      if selection.isEverything { state.archive.addDropped(of: snapshot) }
    }
  }

  /// Counts all pushes of runs, which are about to be removed, and which the reports will lack.
  package func countAllAsMissing() {
    let attribution = runs.attribution
    guard !attribution.isEmpty else { return }
    let snapshot = snapshot()
    var counts: [String: Int] = [:]
    snapshot.records.recent.forEach(in: .allKinds) { record in
      if let run = attribution.owner(of: record)?.run { counts[run, default: 0] += 1 }
      return true
    }
    runs.add(missing: counts)
    runs.state.withLockedValue { $0.archive.addDropped(of: snapshot) }
  }

  /// Returns for each run the number of pushes that the inbox no longer has.
  func missingOfRuns(_ snapshot: InboxSnapshot) -> [String: Int] {
    let (runs, archive) = self.runs.state.withLockedValue { ($0.runs, $0.archive) }
    let attribution = self.runs.attribution
    var counts = archive.dropped(of: runs, snapshot)
    archive.records.forEach(in: .allKinds) { record in
      if let run = attribution.owner(of: record)?.run, snapshot.records.recent.record(record.seq) == nil {
        counts[run, default: 0] += 1
      }
      return true
    }
    return counts
  }

  /// Returns the pushes for the report of runs. Waits for the store.
  ///
  /// - Parameters:
  ///   - ids: The runs; nil for all, and the pushes of none.
  ///   - rulebook: The rules that determine the findings.
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  package func recordsOfRuns(_ ids: Set<String>? = nil, by rulebook: Rulebook) throws(StoreUnavailable) -> RunRecords {
    // First the inbox: a reset adds pushes to the archive before it removes them.
    let snapshot = snapshot().leavingOutDamage
    let (runs, archive) = self.runs.state.withLockedValue { ($0.runs, $0.archive) }
    var selection = Selection.allKinds
    if let ids {
      (selection.after, selection.before) = (.max - 1, 1)
      for run in runs where ids.contains(run.id) {
        let (after, through) = try bounds(of: run)
        selection.after = min(selection.after, after)
        selection.before = max(selection.before, through == .max ? .max : through + 1)
      }
    }
    let report = try findings(by: rulebook, in: selection)
    let former = InboxSnapshot(
      records: SnapshotRecords(recent: archive.records, stored: nil), lastSeq: archive.records.last ?? 0, evicted: 0,
      lastEvicted: 0)
    // Without the pushes that an export lacks, nobody knows which were sent again.
    let knowsRetries = !runs.contains { run in
      (ids?.contains(run.id) ?? true) && (run.missing == nil || run.exported != nil && run.missing != 0)
    }
    let found = report.findings.filter { knowsRetries || $0.kind != .abandoned }
    // In an export, the same push may have been accepted in another test, or for another worker.
    let lost =
      try archive.lost + seqs(analyzer.unresolved, after: selection.after)
      + seqs(found.filter { $0.kind == .abandoned }.map(\.name), after: selection.after)
    return RunRecords(
      archived: former, present: snapshot, selection: selection,
      findings: Dictionary(grouping: found, by: \.name)
        .merging(Dictionary(grouping: archive.findings, by: \.name)) { present, _ in present },
      lost: knowsRetries ? lost : [],
      dropped: (archive.dropped + snapshot.evicted, archive.dropped(of: runs, snapshot)), runs: runs,
      attribution: self.runs.attribution, hasAllFindings: report.isComplete)
  }

  /// Returns the bounds of a run in the numbers of this inbox, which a view gives the pushes of several servers.
  private func bounds(of run: TestRun) throws(StoreUnavailable) -> (after: Int, through: Int) {
    let (after, through) = run.bounds
    guard let server = run.server else { return (after, through) }
    // A `seq` that the view does not know yet is behind all others.
    return (
      after == 0 ? 0 : try seq(of: RecordOrigin(server: server, seq: after)) ?? .max - 1,
      through == 0 ? 0 : try seq(of: RecordOrigin(server: server, seq: through)) ?? .max
    )
  }
}
