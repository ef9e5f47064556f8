internal import APNSMockRules

/// Which run and test each push belongs to, computed when a record is read, so that no push waits for it.
///
/// A push belongs to the open test whose `scope` matches it, the newest of several; else to the test without a scope that is the
/// only open one; else to none. A test that was started in another one, such as the subtest `TestA/b` in `TestA`, has the scope of
/// the outer one too, and the outer one has no pushes while it is open. The run of a push is that of its test, or the run that is
/// found in the same way among the open runs. A run that has a command, such as that of `exec`, contains those without one: a push
/// is theirs first.
package struct RunAttribution: Sendable {
  /// The run and the test of a push.
  package struct Owner: Sendable, Hashable {
    /// The `id` of the run.
    package let run: String
    /// The name of the test; nil for a push outside of the tests.
    package let test: String?
    /// The number of the test in its run: several tests can have the same name. Nil for a push outside of the tests, and of an
    /// export that names only the test.
    package let number: Int?
  }

  /// Whether it is a run that contains others, or that has the pushes of no other run.
  private enum Kind { case inner, outer, rest }

  /// A run or a test while it was open.
  private struct Span: Sendable {
    let owner: Owner
    /// The conditions of its scope, of its run's and of those of the tests around it; empty for none.
    var scopes: [Filter]
    let kind: Kind
    /// The index of the test in which it was started.
    var outer: Int32?

    /// Whether a test was started in this one: its name continues this one's, as subtests of Go and node:test do.
    func contains(_ other: Span) -> Bool {
      guard owner.run == other.owner.run, let name = owner.test?.utf8, let inner = other.owner.test?.utf8,
        inner.count > name.count, inner.starts(with: name)
      else { return false }
      let rest = inner.dropFirst(name.count)
      return rest.starts(with: "/".utf8) || rest.starts(with: " > ".utf8)
    }
  }

  /// The number of open runs and tests that are compared with a push. Only an import can have more.
  private static let maxOpen = 512

  private var spans: [Span] = []
  /// The first `seq` of each part of the numbering in which the same runs and tests are open, and the indices of these in `spans`
  /// in the order of their beginning.
  private var starts: [Int] = []
  private var open: [[Int32]] = []
  /// The pushes of imported runs and tests, and those that were added again, ascending.
  private var imported: [(seqs: ClosedRange<Int>, owner: Owner)] = []
  /// The attribution of the pushes of each server in a view of several.
  private var servers: [String: RunAttribution] = [:]

  /// Whether no push belongs to a run.
  package var isEmpty: Bool { spans.isEmpty && imported.isEmpty && servers.isEmpty }

  init(_ runs: [TestRun]) {
    self.init(ofOneServer: runs.filter { $0.server == nil })
    for (server, runs) in Dictionary(grouping: runs, by: \.server) {
      if let server { servers[server] = RunAttribution(ofOneServer: runs) }
    }
  }

  private init(ofOneServer runs: [TestRun]) {
    var changes: [(seq: Int, isEnd: Bool, span: Int32)] = []
    func add(
      _ owner: Owner, _ scopes: [Filter], _ kind: Kind = .inner, after: Int, through: Int?, _ seqs: SeqRanges?,
      restored: SeqRanges
    ) {
      imported += restored.ranges.map { (seqs: $0, owner: owner) }
      if let seqs { return imported += seqs.ranges.map { (seqs: $0, owner: owner) } }
      guard after < through ?? .max else { return }
      changes.append((after + 1, false, Int32(truncatingIfNeeded: spans.count)))
      if let through { changes.append((through + 1, true, Int32(truncatingIfNeeded: spans.count))) }
      spans.append(Span(owner: owner, scopes: scopes, kind: kind))
    }
    for run in runs {
      let scopes = Self.scopes(run.scope)
      add(
        Owner(run: run.id, test: nil, number: nil), scopes,
        run.hasOnlyTheRest ? .rest : run.containsOthers ? .outer : .inner, after: run.after, through: run.through,
        run.seqs, restored: run.restored)
      for test in run.tests {
        add(
          test.owner(in: run.id), scopes + Self.scopes(test.scope), after: test.after,
          through: test.through ?? run.through, test.seqs, restored: test.restored)
      }
    }
    imported.sort { $0.seqs.lowerBound < $1.seqs.lowerBound }
    changes.sort { ($0.seq, $0.isEnd ? 0 : 1, $0.span) < ($1.seq, $1.isEnd ? 0 : 1, $1.span) }
    var now: [Int32] = []
    for (index, change) in changes.enumerated() {
      if change.isEnd {
        now.removeAll { $0 == change.span }
      } else if now.count < Self.maxOpen {
        let span = spans[Int(change.span)]
        if let outer = now.last(where: { spans[Int($0)].contains(span) }) {
          spans[Int(change.span)].outer = outer
          spans[Int(change.span)].scopes += spans[Int(outer)].scopes
        }
        now.append(change.span)
      }
      if index + 1 == changes.count || changes[index + 1].seq != change.seq {
        starts.append(change.seq)
        open.append(now)
      }
    }
  }

  private static func scopes(_ query: String?) -> [Filter] {
    query.flatMap { try? Filter(scope: $0) }.map { [$0] } ?? []
  }

  /// Returns the run and the test of a push; nil if it belongs to none.
  package func owner(of record: borrowing Record) -> Owner? {
    guard !isEmpty else { return nil }
    if let origin = record.origin { return servers[origin.server]?.owner(of: record, seq: origin.seq) }
    return owner(of: record, seq: record.seq)
  }

  private func owner(of record: borrowing Record, seq: Int) -> Owner? {
    if record.isImported {
      let index = imported.partitioningIndex { $0.seqs.upperBound >= seq }
      return index < imported.count && imported[index].seqs.contains(seq) ? imported[index].owner : nil
    }
    let part = starts.partitioningIndex { $0 > seq }
    guard part > 0 else { return nil }
    var (run, test) = (Candidates(), Candidates())
    var outer: [Int32] = []
    for index in open[part - 1].reversed() {
      let span = spans[Int(index)]
      if span.scopes.isEmpty, let around = span.outer { outer.append(around) }
      if outer.contains(index) { continue }
      if span.owner.test == nil { run.add(span, for: record) } else { test.add(span, for: record) }
    }
    return test.scoped ?? test.alone ?? run.scoped ?? run.alone
  }

  /// The open runs, or the open tests, of which one is the owner of a push.
  private struct Candidates {
    /// The newest whose scope matches.
    private(set) var scoped: Owner?
    private var inner = Unscoped()
    private var outer = Unscoped()
    private var rest = Unscoped()

    private struct Unscoped {
      private var first: Owner?
      private var count = 0

      var only: Owner? { count == 1 ? first : nil }

      mutating func add(_ owner: Owner) {
        first = first ?? owner
        count += 1
      }
    }

    /// The only one without a scope.
    var alone: Owner? { inner.only ?? outer.only ?? rest.only }

    mutating func add(_ span: Span, for record: borrowing Record) {
      if span.scopes.isEmpty {
        switch span.kind {
        case .inner: inner.add(span.owner)
        case .outer: outer.add(span.owner)
        case .rest: rest.add(span.owner)
        }
      } else if scoped == nil {
        for scope in span.scopes where !scope.matches(record) { return }
        scoped = span.owner
      }
    }
  }
}
