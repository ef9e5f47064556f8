internal import APNSMockFaultModel
package import APNSMockNotation

extension RunReport {
  /// Writes the report as members of an object.
  ///
  /// - Parameter numbersPushes: Whether pushes of a view of several servers have numbers, as those of an export, in place of names such
  ///   as `load_1:4711`.
  package func writeMembers(to writer: inout JSONWriter, numbersPushes: Bool = false) {
    func write(_ lines: [Line], to writer: inout JSONWriter) {
      for line in lines { line.write(to: &writer, as: numbersPushes ? .seq(line.seq) : line.name) }
    }
    writer.member("format", 1)
    writer.member("program", program)
    writer.member("outcome", outcome?.rawValue)
    writer.member("verdict", verdict)
    writer.member("command", command)
    writer.arrayMember("runs") { writer in
      for run in runs {
        writer.object { writer in
          run.writeMembers(to: &writer)
          run.writeTestCounts(to: &writer)
        }
      }
    }
    writer.arrayMember("tests") { writer in
      for run in runs {
        for test in run.tests {
          writer.object { writer in
            writer.member("run", run.id)
            writer.member("number", test.number)
            writer.member("name", shortName(of: test))
            writer.member("outcome", test.outcome?.rawValue)
            writer.member("duration_ms", test.duration)
            writer.member("pushes", testPushes[test.owner(in: run.id)] ?? 0)
          }
        }
      }
    }
    writer.member("pushes", pushes)
    writer.member("retries", retries)
    writer.member("missing", missing)
    writer.member("unfollowed", unfollowed)
    writer.objectMember("outcomes") { writer in
      for outcome in Record.Outcome.allCases { writer.member(outcome.rawValue, outcomes[outcome] ?? 0) }
    }
    writer.objectMember("reasons") { writer in
      for (reason, count) in reasons.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }).prefix(50) {
        writer.member(reason, count)
      }
    }
    writer.objectMember("delays") { writer in
      writer.member("median_ms", delay(50))
      writer.member("p90_ms", delay(90))
      writer.member("max_ms", delays.last)
    }
    writer.member("failed_tests", failureCount)
    writer.arrayMember("failures") { writer in
      for failure in failures {
        writer.object { writer in
          failure.test.writeMembers(to: &writer, of: failure.run)
          writer.member("pushes", failure.pushes)
          writer.arrayMember("nearest") { write(failure.nearest, to: &$0) }
        }
      }
    }
    for (name, count, lines) in [("lost", lostCount, lost), ("duplicates", duplicateCount, duplicates)] {
      writer.objectMember(name) { writer in
        writer.member("count", count)
        writer.arrayMember("items") { write(lines, to: &$0) }
      }
    }
    writer.arrayMember("findings") { writer in
      for item in findings {
        writer.object { writer in
          writer.member("finding", item.kind.rawValue)
          writer.member("count", item.count)
          writer.member("summary", item.kind.summary)
          writer.member("advice", item.kind.advice)
          writer.arrayMember("records") { writer in
            for (seq, finding) in item.examples {
              writer.object { writer in
                writer.member("seq", numbersPushes ? .seq(seq) : finding.name)
                writer.member("explanation", finding.explanation)
              }
            }
          }
        }
      }
    }
    writer.objectMember("facts", facts.write)
    if let baseline { writer.objectMember("baseline", baseline.write) } else { writer.nullMember("baseline") }
  }

  private func shortName(of test: RunTest) -> String {
    hasManyTests ? TestRun.cut(test.name, Self.maxShortName) : test.name
  }

  /// What a later run is compared with.
  package var facts: RunFacts {
    var facts = RunFacts()
    (facts.pushes, facts.missing) = (pushes, missing)
    for test in runs.flatMap(\.tests) {
      let (name, failed) = (shortName(of: test), RunOutcome.failed.rawValue)
      // Of several tests with this name, one that has failed.
      if facts.tests[name] != failed { facts.tests[name] = test.outcome?.rawValue ?? "running" }
    }
    for item in findings { facts.findings[item.kind.rawValue] = item.count }
    (facts.unaccepted, facts.lost, facts.reasons) = (
      unaccepted, Set(lostIdentities.sorted().prefix(Self.maxCompared)), reasons
    )
    if let median = delay(50), let p90 = delay(90) { facts.delays = ["median_ms": Int(median), "p90_ms": Int(p90)] }
    return facts
  }
}

extension RunReport.Line {
  fileprivate func write(to writer: inout JSONWriter, as name: PushName) {
    writer.object { writer in
      writer.member("seq", name)
      writer.member("received_at", TimestampFormat.text(receivedAt))
      writer.member("test", test)
      writer.member("topic", topic)
      writer.member("device_token", token)
      writer.member("attempt", attempt)
      writer.member("outcome", outcome.rawValue)
      writer.member("response", response)
      writer.member("rule", rule)
      writer.member("detail", detail)
    }
  }
}
