package import APNSMockRules
package import APNSMockFaultModel
internal import APNSMockHTTPMessage
package import APNSMockNotation

/// The explanation of a push: its checks, the rules that were evaluated, the response, and advice for the provider.
extension Record {
  /// The description of the check of APNs' rules that failed, with the correction; nil if none failed.
  package var rejectionDetail: String? {
    guard let verdict, !verdict.isAccepted else { return nil }
    return request.headers.bytes.withUnsafeBytes { verdict.detail(headers: $0, bodySize: bodySize) }
  }

  /// Writes the explanation as members of an object.
  ///
  /// - Parameters:
  ///   - inbox: The inbox of the record.
  ///   - evaluations: The result of evaluating the active rules for the push.
  package func writeExplanation(
    to writer: inout JSONWriter, rulebook: Rulebook, in inbox: Inbox, evaluations: [RuleEvaluationReport]
  ) {
    let findings = inbox.findings(on: self, by: rulebook)
    writer.member("seq", name)
    writer.member("accepted", accepted)
    writer.member("decision", end.decision.rawValue)
    writer.member("ending", end.ending.rawValue)
    writer.member("outcome", outcome.rawValue)
    writer.member("attempt", attempt)
    writer.member("text", narrative)
    writer.name("verdict")
    if let verdict { writer.object { write(verdict, to: &$0) } } else { writer.null() }
    writer.arrayMember("rules") { writer in
      var fired = Array(wireDetails?.injections ?? [])
      for step in evaluations {
        let index = fired.firstIndex { $0.rule == step.rule && $0.profile == step.profile }
        let injection = index.map { fired.remove(at: $0) }
        writer.object { injection?.writeMembers(to: &$0, at: step.injectionPoint) ?? step.writeMembers(to: &$0) }
      }
      // Injections of magic device tokens and of rules that were removed.
      for injection in fired { writer.object { injection.writeMembers(to: &$0, at: nil) } }
    }
    writer.objectMember("served", writeServed)
    writeUpstream(to: &writer)
    writer.arrayMember("findings") { writer in
      for finding in findings {
        writer.object { writer in
          writer.member("finding", finding.kind.rawValue)
          writer.member("summary", finding.kind.summary)
          writer.member("advice", finding.kind.advice)
          finding.writeProof(to: &writer)
        }
      }
    }
    writer.member("advice", advice(findings))
  }

  /// A description of what happened, one sentence for each step.
  private var narrative: String {
    var sentences: [String] = []
    switch verdict {
    case nil: sentences.append(unvalidatedText)
    case let verdict? where verdict.isAccepted: sentences.append("APNs would accept it.")
    case let verdict?:
      let response = [String(verdict.status), verdict.reason?.text].compactMap(\.self).joined(separator: " ")
      sentences.append("APNs would respond with \(response): \(detail(of: verdict)).")
    }
    if hasIgnoredToken { sentences.append("The provider token is ignored: the connection has a client certificate.") }
    for injection in wireDetails?.injections ?? [] { sentences.append(injection.sentence) }
    if let upstream = wireDetails?.upstream { sentences.append(text(of: upstream)) }
    sentences.append(endingText)
    if accepted, end.ending != .response, end.ending != .pending { sentences.append("APNs accepted the push.") }
    return sentences.joined(separator: " ")
  }

  /// What upstream did, compared with APNs' rules.
  private func text(of upstream: WireDetails.UpstreamAnswer) -> String {
    guard let status = upstream.status else {
      return end.decision == .unknown
        ? "It was forwarded, and it is not known whether upstream accepted it: \(upstream.problem ?? "no answer")."
        : "Upstream did not process it: \(upstream.problem ?? "no answer")."
    }
    let answer = [String(status), upstream.reason].compactMap(\.self).joined(separator: " ")
    guard isDeviating else { return "Upstream answered \(answer), as the rules." }
    let check = verdict?.failed.map { " (check \($0.name), see Protocol.md, section 8.2)" } ?? ""
    let deviation = "Upstream answered \(answer): this deviates from the rules\(check)."
    guard let reason = upstream.reason.flatMap({ Reason(text: $0) }) else { return deviation }
    if reason == .missingProviderToken, connection.certificate != nil {
      return deviation
        + " The client certificate of a provider cannot be passed on: specify it with --upstream-cert FILE "
        + "and --upstream-key FILE."
    }
    let checks = reason.checks.map(\.name).joinedWithOr
    return deviation + " By the rules, \(reason.text) means: \(reason.when) "
      + (checks.isEmpty
        ? "(Protocol.md, section 7.2; no check gives it)." : "(check \(checks), see Protocol.md, section 8.2).")
  }

  /// Why there is no verdict.
  private var unvalidatedText: String {
    switch end.ending {
    case .malformed:
      "The request is malformed: \(wireDetails?.violationText ?? "its stream was reset with PROTOCOL_ERROR")."
    case .refused where isRequestComplete: "The request was not processed: the server refused its stream."
    case .disconnected: "The request was not processed: the connection ended first."
    default:
      isRequestComplete ? "The request was not validated." : "The request was not validated: it never became complete."
    }
  }

  /// How the attempt ended for the client.
  private var endingText: String {
    let cause = faultedBy.map { ", by the rule of push \(name(ofOther: $0))" } ?? ""
    return switch end.ending {
    case .response: "The client was answered \(responseText)."
    case .refused:
      if let goAway = wireDetails?.goAway, goAway.lastStream < stream {
        "A GOAWAY with last stream \(goAway.lastStream)\(cause) told the client that the push was not processed."
      } else {
        "The stream was refused\(cause): the client knows that the push was not processed."
      }
    case .malformed: "The server reset the stream."
    case .reset:
      "The server reset the stream with \(wireDetails?.reset ?? "an error code"): the client got no response."
    case .cancelled: "The client reset the stream before it had a response."
    case .incomplete: "The connection ended\(cause) before the request was complete."
    case .disconnected: "The connection ended\(cause) before the client had a response."
    case .pending: "It has no response yet."
    case .unknown: "The record, of an older format, does not say what the client was told."
    }
  }

  /// Returns advice for the provider, in one sentence.
  private func advice(_ findings: [Finding]) -> String {
    let advice = retryAdvice
    if case .some(.none) = advice {
      // A finding about the time before this attempt is no advice for a push that needs no further one.
      return findings.first { !$0.kind.concernsRetries }?.kind.advice ?? "No action needed."
    }
    if let finding = findings.first { return finding.kind.advice }
    switch advice {
    case nil where wireDetails?.upstream != nil && outcome == .unknown:
      return "Do not send it again before you know whether the device has it: upstream may have accepted it."
    case nil: return outcome == .pending ? "Wait for the response." : "Record the push again with this version."
    case .some(.none): return "No action needed."
    case .unregister: return Finding.Kind.retried410.advice
    case .later: return "Retry it later, with a delay that grows with each attempt."
    case .immediately: return "Retry it, on a new connection if this one ends: it was not processed."
    case .afterLoss: return "Retry it with the same apns-id after a delay: APNs may have accepted it."
    case .fix:
      return verdict?.isAccepted == false
        ? "Fix the cause named in the response before sending it again." : Finding.Kind.retriedPermanent.advice
    }
  }
}

extension Injection {
  fileprivate func writeMembers(to writer: inout JSONWriter, at injectionPoint: InjectionPoint?) {
    writer.member("rule", rule)
    writer.member("profile", profile)
    writer.member("at", injectionPoint?.rawValue)
    writer.member("result", "fired")
    writer.member("action", action.name.rawValue)
    writer.member("draw", draw)
    writer.member("p", probability)
    writer.member("ordinal", ordinal)
    writer.member("text", sentence)
  }

  fileprivate var sentence: String {
    let origin = profile.map { " of profile \($0)" } ?? ""
    guard let draw, let probability else { return "Rule \(rule)\(origin) fired (action \(action.name.rawValue))." }
    return
      "Rule \(rule)\(origin) fired (action \(action.name.rawValue); draw \(draw.roundedToThousandths) < probability "
      + "\(probability.roundedToThousandths))."
  }
}

extension RuleEvaluationReport {
  fileprivate func writeMembers(to writer: inout JSONWriter) {
    writer.member("rule", rule)
    writer.member("profile", profile)
    writer.member("at", injectionPoint.rawValue)
    switch outcome {
    case .activatedLater:
      writer.member("result", "not-yet")
      writer.member("text", "The rule was activated after the push arrived.")
    case .rejectedByAPNs:
      writer.member("result", "rejected-by-apns")
      writer.member("text", "APNs rejects the push, and the rule applies only to pushes that APNs accepts.")
    case .missed(let test, let wanted, let seen):
      writer.member("result", "missed")
      writer.member("test", test)
      writer.member("wanted", wanted)
      writer.member("seen", seen.map { Explanation.quoted($0) })
      writer.member("text", "\(test) must be \(wanted) and is \(seen.map { Explanation.quoted($0) } ?? "absent").")
    case .excepted:
      writer.member("result", "excepted")
      writer.member("text", "An exception of the condition matches.")
    case .stopped(let part):
      writer.member("result", "stopped")
      writer.member("part", part)
      writer.member("text", "The condition matches, but `\(part)` prevents firing.")
    case .notDrawn(let draw, let probability):
      writer.member("result", "not-drawn")
      writer.member("draw", draw)
      writer.member("p", probability)
      let limit = probability.roundedToThousandths
      let cause = draw.map { "the draw \($0.roundedToThousandths) is not below the probability \(limit)" }
      writer.member("text", "The condition matches, but \(cause ?? "the probability is \(limit)").")
    case .mayFire(let draw, let probability):
      writer.member("result", "did-not-fire")
      writer.member("draw", draw)
      writer.member("p", probability)
      writer.member("text", "The condition matches, but an earlier rule or a counter prevented firing.")
    }
  }
}

extension Double {
  fileprivate var roundedToThousandths: Double { (self * 1000).rounded() / 1000 }
}
