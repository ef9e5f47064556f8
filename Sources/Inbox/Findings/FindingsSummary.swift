package import APNSMockRules
package import APNSMockNotation

/// The number of findings of each kind, with the newest findings.
package struct FindingsSummary: Sendable {
  /// The findings of one kind.
  package struct Item: Sendable {
    /// The kind of the findings.
    package let kind: Finding.Kind
    /// The number of records with such a finding.
    package let count: Int
    /// The newest findings, newest first, up to the requested limit.
    package let newest: [Finding]
  }

  /// The kinds that were found, in ascending order.
  package let items: [Item]
  /// The total number of findings.
  package let total: Int
  /// The number of records evicted since the inbox was last emptied.
  package let evicted: Int
  /// Whether no record after the selection's cursor was evicted, so that none can be missing.
  package let isComplete: Bool
  /// The records with findings of each kind over time; nil if it was not requested.
  fileprivate var timeline: Timeline?
}

extension Inbox {
  /// Returns the findings on the selected records, counted by kind.
  ///
  /// - Parameter limit: The maximum number of findings listed for each kind.
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  package func summary(
    of selection: Selection, by rulebook: Rulebook, limit: Int
  ) throws(StoreUnavailable) -> FindingsSummary {
    let snapshot = snapshot()
    try updateFindings(by: rulebook)
    var collection = FindingsCollection(limit: limit)
    try collection.add(selection, of: snapshot, in: self, by: rulebook)
    return collection.summary(of: selection, in: snapshot, self)
  }

  /// Returns the same as `summary(of:by:limit:)`, suspending between slices of the records.
  ///
  /// - Parameter buckets: The maximum number of parts of the time line; nil for no time line.
  /// - Throws: `FilterError` if the selection exceeds the work limit; `CancellationError` if the task was cancelled;
  ///   `StoreUnavailable` if the store cannot be read.
  package func summaryInSlices(
    of selection: Selection, by rulebook: Rulebook, limit: Int, buckets: Int? = nil
  ) async throws -> FindingsSummary {
    let snapshot = snapshot().leavingOutDamage
    try updateFindings(by: rulebook)
    var collection = FindingsCollection(limit: limit, timeline: buckets.map { Timeline(maxBuckets: $0) })
    try await snapshot.forEachSlice(of: selection, newestFirst: true) { part in
      try collection.add(part, of: snapshot, in: self, by: rulebook)
      return true
    }
    return collection.summary(of: selection, in: snapshot, self)
  }
}

/// Collects the findings on records, newest first.
private struct FindingsCollection {
  /// The maximum number of findings kept for each kind.
  let limit: Int
  private var counts: [Finding.Kind: Int] = [:]
  private var newest: [Finding.Kind: [Finding]] = [:]
  private var timeline: Timeline?

  init(limit: Int, timeline: Timeline? = nil) {
    self.limit = limit
    self.timeline = timeline
  }

  mutating func add(
    _ selection: Selection, of snapshot: InboxSnapshot, in inbox: Inbox, by rulebook: Rulebook
  ) throws(StoreUnavailable) {
    try snapshot.records.forEach(in: selection, newestFirst: true) { record in
      for kind in record.findingKinds(by: rulebook, in: inbox) {
        counts[kind, default: 0] += 1
        timeline?.add(record.receivedAt, to: kind.rawValue)
        guard newest[kind, default: []].count < limit else { continue }
        newest[kind, default: []] += inbox.findings(on: copy record, by: rulebook).filter { $0.kind == kind }
      }
      return true
    }
  }

  func summary(of selection: Selection, in snapshot: InboxSnapshot, _ inbox: Inbox) -> FindingsSummary {
    let items = counts.keys.sorted().map { kind in
      FindingsSummary.Item(kind: kind, count: counts[kind] ?? 0, newest: Array((newest[kind] ?? []).prefix(limit)))
    }
    return FindingsSummary(
      items: items, total: items.reduce(0) { $0 + $1.count }, evicted: snapshot.evicted,
      isComplete: snapshot.isComplete(after: selection.after) && inbox.analyzer.isComplete, timeline: timeline)
  }
}

extension FindingsSummary {
  /// Writes the summary as members of an object.
  package func writeMembers(to writer: inout JSONWriter) {
    writer.arrayMember("items") { writer in
      for item in items { writer.object { item.writeMembers(to: &$0) } }
    }
    writer.member("total", total)
    writer.member("evicted", evicted)
    writer.member("complete", isComplete)
    if let timeline { writer.objectMember("timeline", timeline.write) }
  }
}

extension FindingsSummary.Item {
  fileprivate func writeMembers(to writer: inout JSONWriter) {
    writer.member("finding", kind.rawValue)
    writer.member("count", count)
    writer.member("summary", kind.summary)
    writer.member("advice", kind.advice)
    writer.arrayMember("records") { writer in
      for finding in newest {
        writer.object { writer in
          writer.member("seq", finding.name)
          writer.member(finding.origin)
          finding.writeProof(to: &writer)
        }
      }
    }
    writer.member("more", count - newest.count)
  }
}

extension Finding {
  /// Writes the members that explain the finding.
  package func writeProof(to writer: inout JSONWriter) {
    writer.member("evidence", evidence.map(name(of:)))
    writer.member("explanation", explanation)
  }
}

/// The findings on the records of an inbox.
package struct FindingsReport: Sendable {
  /// The findings by ascending `seq`; those on one record in the order of the kinds.
  package let findings: [Finding]
  /// The number of records evicted since the inbox was last emptied.
  package let evicted: Int
  /// Whether no record after the selection's cursor was evicted, so that none can be missing.
  package let isComplete: Bool
}

extension Inbox {
  /// Returns the findings on the selected records. Other records are still analyzed as their context.
  ///
  /// The result is a snapshot: pending pushes and open connections may cause further findings when they end. It is
  /// incomplete if the current task was cancelled.
  ///
  /// - Parameter rulebook: The active rules, which some findings depend on.
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  package func findings(
    by rulebook: Rulebook, in selection: Selection
  ) throws(StoreUnavailable) -> FindingsReport {
    let snapshot = snapshot()
    try updateFindings(by: rulebook)
    var findings: [Finding] = []
    try snapshot.records.forEach(in: selection) { record in
      findings += self.findings(on: copy record, by: rulebook)
      return !Task.isCancelled
    }
    return FindingsReport(
      findings: findings, evicted: snapshot.evicted,
      isComplete: snapshot.isComplete(after: selection.after) && analyzer.isComplete && !Task.isCancelled)
  }
}
