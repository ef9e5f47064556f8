internal import APNSMockNotation
package import APNSMockRules

/// The export of a run whose tests each had a server of their own.
package struct ServerPerTestExport: Sendable {
  /// The name of the run.
  package let name: String
  /// The labels of the run.
  package let labels: [String: String]
  /// Milliseconds since 1970.
  package let startedAt: Int64
  private var servers = 0
  /// The highest number of a test so far.
  private var lastTest = 0
  private var pushes = 0
  private var missing: Int? = 0
  private var hasFailed = false

  private static let id = "r1"

  /// Creates the export of a run that begins.
  package init(name: String, labels: [String: String], startedAt: Int64) {
    (self.name, self.labels, self.startedAt) = (name, labels, startedAt)
  }

  /// Returns the line of the run, which replaces an earlier one.
  ///
  /// - Parameter endedAt: Milliseconds since 1970; nil while a test runs, so that a run that ends then is interrupted.
  package func line(endedAt: Int64?) -> [UInt8] {
    var run = TestRun(id: Self.id, name: TestRun.cut(name, TestRun.maxName), startedAt: startedAt)
    (run.labels, run.endedAt, run.outcome) = (labels, endedAt, hasFailed ? .failed : nil)
    var list = ExportList(isArray: false)
    list.append(endOf: run, pushes: pushes, missing: missing)
    return list.take()
  }

  /// Returns the tests and the pushes of a server, with numbers that differ from those of the servers before.
  ///
  /// - Parameter rulebook: The rules that determine the findings.
  /// - Throws: `StoreUnavailable` if the store of the inbox cannot be read.
  package mutating func lines(_ records: RunRecords, by rulebook: Rulebook) throws(StoreUnavailable) -> [UInt8] {
    servers += 1
    let former = lastTest
    var list = ExportList(isArray: false)
    missing = missing.flatMap { known in records.missing(of: [Self.id]).map { known + $0 } }
    // Not those that the tested program has started itself.
    for var test in records.runs.first(where: { $0.id == Self.id })?.tests ?? [] {
      test.number += former
      lastTest = max(lastTest, test.number)
      hasFailed = hasFailed || test.outcome == .failed
      list.append(JSONWriter.object { test.writeMembers(to: &$0, of: Self.id) })
    }
    var iterator = records.makeIterator()
    while let group = try iterator.next() {
      for record in group {
        guard let owner = records.attribution.owner(of: record), owner.run == Self.id else { continue }
        pushes += 1
        list.append(
          records.object(
            record, of: .init(run: Self.id, test: owner.test, number: owner.number.map { $0 + former }),
            as: .seq(pushes), connection: "\(servers)-", by: rulebook))
      }
    }
    return list.take()
  }
}

extension Inbox {
  /// Starts a run with one test, to which all pushes belong.
  ///
  /// - Returns: What ends the test, at a time in milliseconds since 1970.
  package func startRun(
    ofTest name: String, seed: UInt64, profile: String, now: Int64
  ) -> @Sendable (_ outcome: RunOutcome, _ message: String?, _ now: Int64) -> Void {
    let run = runs.start(RunList.RunChanges(), seed: seed, profile: profile, now: now, lastSeq: 0)
    _ = runs.startTest(in: run.id, name: name, scope: nil, now: now, lastSeq: 0)
    return { outcome, message, now in
      let lastSeq = self.snapshot().lastSeq
      _ = self.runs.endTest(in: run.id, 1, outcome, message: message, now: now, lastSeq: lastSeq)
    }
  }
}
