import APNSRules
public import Faults
public import Inbox

extension ServerState {
  /// Returns how the active rules evaluate a recorded push as it was received: first the rules of the injection
  /// point `request`, then those of `response`. Rules that are no longer active are not included.
  public func ruleWalk(of record: Record) -> [RuleStep] {
    guard let verdict = record.verdict else { return [] }
    let plan = behaviour.load().plan
    let facts = record.connection
    let connection = Traffic.Connection(
      number: UInt64(facts.id.dropFirst()) ?? 0, client: Endpoint(facts.client)?.host ?? facts.client,
      listener: facts.listener, serverName: facts.sni, certificateUID: facts.certificate?.subjectUID,
      // Clients use odd stream ids, from 1 (RFC 9113 section 5.1.1).
      streamsOpened: Int(record.stream) / 2 + 1)
    var traffic = Traffic(
      connection: connection,
      push: Traffic.Push(
        request: record.request, verdict: verdict, key: record.pushKey,
        defaultTopic: facts.defaultTopic(verdict.facts), attempt: Int(record.attempt), now: record.receivedAt))
    let request = plan.walk(traffic, at: .request, now: record.arrivedAt)
    traffic.answer = Traffic.Answer(
      status: record.served.status.map(Int.init) ?? verdict.status, reason: record.servedReason ?? verdict.reason?.text)
    return request + plan.walk(traffic, at: .response, now: record.arrivedAt)
  }
}
