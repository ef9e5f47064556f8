public import Notation

extension VerificationReport {
  /// Writes the report as members of an object.
  public func write(to writer: inout JSONWriter) {
    writer.member("passed", isPassed)
    writer.member("inconclusive", isInconclusive)
    writer.arrayMember("expectations") { writer in
      for expectation in expectations { writer.object(expectation.write) }
    }
    writer.name("order")
    if let order {
      writer.object { writer in
        order.write(to: &writer)
        writer.member("text", order.text)
      }
    } else {
      writer.null()
    }
    for (name, pushes) in [("no_others", others), ("nothing_lost", lost)] {
      writer.name(name)
      if let pushes {
        writer.object { writer in
          pushes.criterion.write(to: &writer)
          writer.seqsMember("seqs", pushes.seqs)
          writer.member("text", pushes.text)
        }
      } else {
        writer.null()
      }
    }
    writer.name("no_findings")
    if let findings {
      writer.object { writer in
        findings.criterion.write(to: &writer)
        writer.arrayMember("findings") { writer in
          for finding in findings.findings { writer.object(finding.writeMembers) }
        }
        writer.member("text", findings.text)
      }
    } else {
      writer.null()
    }
    writer.member("evicted", evicted)
    writer.member("complete", isComplete)
    writer.member("seed", scene.seed)
    writer.member("profile", scene.profile)
    writer.member("text", text)
  }
}

extension VerificationReport.Expected {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("name", name)
    writer.member("passed", isMet)
    writer.arrayMember("criteria") { writer in
      for criterion in criteria { writer.object(criterion.write) }
    }
    writer.member("matched", matched)
    writer.seqsMember("seqs", seqs)
    writer.arrayMember("nearest") { writer in
      for push in nearest { writer.object(push.write) }
    }
    writer.member("text", text)
  }
}

extension VerificationReport.Nearest {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("seq", seq)
    writer.member("apns_id", apnsID)
    writer.member("met", met)
    writer.member("of", criteria.count)
    writer.arrayMember("criteria") { writer in
      for criterion in criteria { writer.object(criterion.write) }
    }
  }
}

extension VerificationReport.Criterion {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("criterion", name)
    writer.member("wanted", wanted)
    writer.member("found", found)
    writer.member("passed", isMet)
    writer.member("hint", hint)
  }
}

extension Finding {
  fileprivate func writeMembers(to writer: inout JSONWriter) {
    writer.member("finding", kind.rawValue)
    writer.member("seq", seq)
    writer.seqsMember("evidence", Array(evidence.prefix(VerificationReport.listLimit)))
    writer.member("explanation", explanation)
  }
}

extension JSONWriter {
  fileprivate mutating func seqsMember(_ name: String, _ seqs: [Int]) {
    arrayMember(name) { writer in
      for seq in seqs { writer.integer(seq) }
    }
  }
}
