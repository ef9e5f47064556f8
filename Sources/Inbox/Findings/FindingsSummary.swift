public import APNSRules
public import Notation

/// What the provider does wrong, by kinds: how often, and the newest cases of each.
public struct FindingsSummary: Sendable {
  /// All findings of one kind.
  public struct Item: Sendable {
    /// Their kind.
    public let kind: Finding.Kind
    /// How many records earn it.
    public let count: Int
    /// The newest of them, newest first, at most as many as were asked for.
    public let newest: [Finding]
  }

  /// The kinds that there are, in their order.
  public let items: [Item]
  /// How many findings there are in all.
  public let total: Int
  /// How many records the limits have pushed out since the inbox was last emptied.
  public let evicted: Int
  /// Whether no record after the selection's cursor was pushed out, so that none can be missing.
  public let isComplete: Bool
}

extension Inbox {
  /// What the provider does wrong in the selected records, counted.
  ///
  /// - Parameter limit: how many cases of each kind are told.
  public func summary(of selection: Selection, by rulebook: Rulebook, limit: Int) -> FindingsSummary {
    judge(by: rulebook)
    let snapshot = snapshot()
    var collection = FindingsCollection(limit: limit)
    collection.add(selection, of: snapshot, in: self, by: rulebook)
    return collection.summary(of: selection, in: snapshot)
  }

  /// The same as `summary(of:by:limit:)`, made in slices between which it suspends.
  ///
  /// - Throws: `FilterError` if the selection exceeds the work budget; `CancellationError` if the task was cancelled.
  public func summaryInSlices(
    of selection: Selection, by rulebook: Rulebook, limit: Int
  ) async throws -> FindingsSummary {
    judge(by: rulebook)
    let snapshot = snapshot()
    var collection = FindingsCollection(limit: limit)
    try await snapshot.forEachSlice(of: selection, newestFirst: true) { part in
      collection.add(part, of: snapshot, in: self, by: rulebook)
    }
    return collection.summary(of: selection, in: snapshot)
  }
}

/// Collects findings of records, newest first.
private struct FindingsCollection {
  /// How many cases of each kind are kept.
  let limit: Int
  private var counts: [Finding.Kind: Int] = [:]
  private var newest: [Finding.Kind: [Finding]] = [:]

  init(limit: Int) { self.limit = limit }

  mutating func add(_ selection: Selection, of snapshot: InboxSnapshot, in inbox: Inbox, by rulebook: Rulebook) {
    snapshot.records.forEach(in: selection, newestFirst: true) { record in
      for kind in record.findingKinds(by: rulebook, in: inbox) {
        counts[kind, default: 0] += 1
        guard newest[kind, default: []].count < limit else { continue }
        newest[kind, default: []] += inbox.findings(on: copy record, by: rulebook).filter { $0.kind == kind }
      }
      return true
    }
  }

  func summary(of selection: Selection, in snapshot: InboxSnapshot) -> FindingsSummary {
    let items = counts.keys.sorted().map { kind in
      FindingsSummary.Item(kind: kind, count: counts[kind] ?? 0, newest: Array((newest[kind] ?? []).prefix(limit)))
    }
    return FindingsSummary(
      items: items, total: items.reduce(0) { $0 + $1.count }, evicted: snapshot.evicted,
      isComplete: snapshot.isComplete(after: selection.after))
  }
}

extension FindingsSummary {
  /// Writes the members of an object.
  public func writeMembers(to writer: inout JSONWriter) {
    writer.arrayMember("items") { writer in
      for item in items { writer.object { item.writeMembers(to: &$0) } }
    }
    writer.member("total", total)
    writer.member("evicted", evicted)
    writer.member("complete", isComplete)
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
          writer.member("seq", finding.seq)
          finding.writeProof(to: &writer)
        }
      }
    }
    writer.member("more", count - newest.count)
  }
}

extension Finding {
  /// Writes the members that say why.
  func writeProof(to writer: inout JSONWriter) {
    writer.arrayMember("evidence") { writer in
      for seq in evidence { writer.integer(seq) }
    }
    writer.member("explanation", explanation)
  }
}
