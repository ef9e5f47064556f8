import APNSRules
import Faults
import HTTP2Session
import HTTPMessage
import Inbox

/// Where the decision of a fault becomes what happens to a push: an answer, its delay, a reset, silence.
extension PushPath {
  /// Whether a rule could do something to this push. For a server without rules this is all that faults cost.
  func isConcernedByFaults(_ request: HTTPRequest, _ verdict: borrowing Verdict) -> Bool {
    switch faultReach {
    case .none: return false
    case .all: return true
    case .magicTokens: return isMagic(request, verdict)
    }
  }

  private func isMagic(_ request: HTTPRequest, _ verdict: borrowing Verdict) -> Bool {
    guard takesMagicTokens, let token = verdict.facts.deviceToken else { return false }
    return request.headers.bytes.withUnsafeBytes { packed in
      MagicToken.isMarked(UnsafeRawBufferPointer(rebasing: packed[token.indices]))
    }
  }

  /// Does to a push what the faults in force say.
  ///
  /// - Parameter attempt: its number, if a rule has asked for it.
  /// - Returns: whether they decided about it, so that its way ends here; else it is left to APNs.
  func letFaultsDecide(
    _ request: HTTPRequest, of stream: RequestStream, _ verdict: borrowing Verdict, _ identity: Identity,
    attempt: inout Int32?, _ session: HTTP2ServerSession
  ) -> Bool {
    if let draining {
      let course = Course(verdict)
      course.follow(Decision(outcome: draining), at: .request, now: now)
      follow(course, request, on: stream, verdict, identity, attempt: nil, session)
      return true
    }
    let plan = behaviour.plan
    let glance = Traffic.Glance(key: identity.key, isAccepted: verdict.isAccepted)
    func number() -> Int {
      let number = attempt ?? attempts.peek(identity.countKey, now: batchBegan)
      attempt = number
      // The first attempt is the usual case and needs no look-up.
      return number == 1 ? 1 : max(1, Int(number - attempts.unprocessedAttempts(of: identity.countKey)))
    }
    let atRequest = plan.rulesLeft(at: .request, for: glance, attempt: number, now: batchBegan)
    var atResponse: RulesLeft?
    if atRequest.isEmpty, !(verdict.isAccepted && isMagic(request, verdict)) {
      // So it is with nearly all pushes, and nothing was made for them.
      if !hasResponseRules { return false }
      let left = plan.rulesLeft(at: .response, for: glance, attempt: number, now: batchBegan)
      if left.isEmpty { return false }
      atResponse = left
    }
    attempts.expectRefused(identity.countKey)
    if !hasResponseRules, let fault = plan.firePlainAnswer(atRequest) {
      // An accepted provider token widens the connection before any response but a 403.
      if fault.answer.status != 403 { announceStreams(before: nil, on: stream, session) }
      answer(
        request, of: stream, verdict, identity, attempt: attempt, status: fault.answer.status,
        reason: fault.answer.reason, body: fault.answer.body, by: fault.by, session)
      return true
    }
    let course = Course(verdict)
    if atResponse == nil { extend(course, at: .request, atRequest, request, verdict, identity.key, attempt: number) }
    if hasResponseRules, course.isAnswered {
      let left =
        atResponse
        ?? plan.rulesLeft(
          at: .response, for: glance, attempt: number, now: batchBegan, excludingOutcomes: course.isFaulted)
      if !left.isEmpty { extend(course, at: .response, left, request, verdict, identity.key, attempt: number) }
    }
    if course.injections.isEmpty { return false }
    follow(course, request, on: stream, verdict, identity, attempt: attempt, session)
    return true
  }

  /// Does what was decided for a push, or as much of it as is due.
  private func follow(
    _ course: Course, _ request: HTTPRequest, on stream: RequestStream, _ verdict: borrowing Verdict,
    _ identity: Identity, attempt: Int32?, _ session: HTTP2ServerSession
  ) {
    if !(course.isAnswered && course.answer.status == 403) { announceStreams(before: nil, on: stream, session) }
    if course.latches { standing.latchTokenUpdates(now: now) }
    if !course.effects.isEmpty { effects += course.effects }
    if isHEAD(request, verdict) { course.leaveOutBody() }

    let hasTemplate = verdict.reason != nil || verdict.isAccepted || course.isFaulted
    let answer = hasTemplate ? template(for: course.answer, to: request, verdict.facts) : nil
    let isDone = !course.takesTime
    // Where the client does not hear that APNs took the push, its next try is a retry.
    let number = countAttempt(
      of: identity, accepted: isDone && course.isAccepted && course.isAnswered, next: attempt)
    record(
      request, verdict, generatedID: answer?.generatedID(of: verdict.facts) ?? [],
      key: identity.key, attempt: number, isHeld: !isDone, isDone ? ending(of: course, on: stream) : pending(course))
    if isDone {
      perform(course, answer, on: stream, session)
    } else {
      held[stream.id] = HeldPush(
        stream: stream, course: course, answer: answer, countKey: identity.countKey, began: batchBegan)
      effects.append(.wake(stream: stream.id, after: course.delay))
    }
  }

  /// Goes on with a held push when its time has come.
  func wake(_ id: Int32, session: HTTP2ServerSession) {
    guard var push = held[id] else { return }
    if push.piecesLeft > 0 {
      session.releasePart(of: push.stream)
      push.piecesLeft -= 1
      held[id] = push.piecesLeft > 0 ? push : nil
      if push.piecesLeft > 0, let interval = push.course.shape.interval {
        effects.append(.wake(stream: id, after: interval))
      }
      return
    }
    held[id] = nil
    beginBatch()
    finish(push, with: ending(of: push.course, on: push.stream, latency: MachineTime.nanoseconds - push.began))
    perform(push.course, push.answer, on: push.stream, session)
  }

  /// A client gave up a stream that was held, or the connection is over, or the server refused the stream.
  ///
  /// - Parameter reset: the code with which the server reset the stream; nil if it did not.
  func abandon(_ id: Int32, reset: HTTP2ErrorCode? = nil) {
    // Request and reset came in one read: what has no number in the inbox yet could not be ended there.
    if let push = held[id], push.seq == nil { commit() }
    guard let push = held.removeValue(forKey: id), push.piecesLeft == 0 else { return }
    release(push.course)
    finish(
      push,
      with: Record.End(
        outcome: .aborted, accepted: push.course.isAccepted && !push.course.waitsToBeTaken, served: Record.Served(),
        aftermath: Aftermath(
          injections: push.course.injections, reset: reset?.name, endedAt: MachineTime.nanoseconds),
        finishedAt: now))
  }

  /// The connection is over: the story of every push that is held ends here.
  func abandonAll() {
    for id in held.keys.sorted() { abandon(id) }
  }

  /// From now on every push gets this answer.
  func drain(by injection: Injection, _ answer: Action.Answer) {
    draining = injection.doing(.respond(answer))
  }

  /// A stream that comes within this many nanoseconds of a GOAWAY may have been on its way already: it crossed it on the
  /// wire, or the client had not read it yet. Half a second, for machines under load.
  private static let crossing: Int64 = 500_000_000

  /// Keeps a record of a push that came after a GOAWAY which said that it will not be served.
  func ignore(_ stream: RequestStream) {
    let late = batchBegan - farewellAt
    let breach: Aftermath.Breach? =
      late < Self.crossing ? nil : .afterGoAway(lastStream: lastServedStream, nanoseconds: late)
    let verdict = Verdict(of: stream.request)
    let identity = identity(of: stream.request, verdict.facts)
    record(
      stream.request, verdict, isJudged: false, generatedID: [], key: identity.key,
      // The client has to send an unprocessed push again, and that is its next attempt.
      attempt: attempts.countUnprocessed(identity.countKey, now: batchBegan),
      Record.End(
        outcome: .faulted, accepted: false, served: Record.Served(), aftermath: breach.map { Aftermath(breach: $0) },
        finishedAt: now))
  }

  // MARK: - Deciding

  /// Works what the rules of a moment do into the course of a push.
  private func extend(
    _ course: Course, at moment: Moment, _ left: RulesLeft, _ request: HTTPRequest, _ verdict: borrowing Verdict,
    _ key: PushKey, attempt: () -> Int
  ) {
    let plan = behaviour.plan
    if let injection = plan.fire(left) {
      return course.follow(Decision(outcome: injection), at: moment, now: now)
    }
    let push = Traffic.Push(
      request: request, verdict: copy verdict, key: key, defaultTopic: connection.defaultTopic(verdict.facts),
      attempt: attempt(), now: now)
    var traffic = Traffic(connection: traffic, push: push)
    if moment == .response {
      traffic.answer = Traffic.Answer(status: course.answer.status, reason: course.answer.reasonText)
    }
    let decision = plan.decide(
      traffic, at: moment, now: batchBegan, excludingOutcomes: course.isFaulted, among: left)
    course.follow(decision, at: moment, now: now)
  }

  /// The connection as rules see it.
  var traffic: Traffic.Connection {
    Traffic.Connection(
      number: log.number, client: log.clientAddress, listener: connection.listener, serverName: connection.sni,
      certificateUID: connection.certificate?.subjectUID, streamsOpened: streamsTaken)
  }

  // MARK: - Doing

  /// The headers of an answer, with its ids.
  private func template(
    for answer: Course.Answer, to request: HTTPRequest, _ facts: PushFacts
  ) -> AnswerTemplates.Template {
    fillTemplate(status: answer.status, for: request, facts)
    // Its bytes are copied only if it changes, or the next one is filled in before it is gone.
    var template = answer.status == 200 ? answers.accepted : answers.rejected
    for field in answer.headers { template.headers.append(name: field.name, value: field.value) }
    return template
  }

  private func perform(
    _ course: Course, _ answer: AnswerTemplates.Template?, on stream: RequestStream, _ session: HTTP2ServerSession
  ) {
    let id = stream.id
    release(course)
    switch course.end {
    case .answer:
      give(answer, of: course, on: stream, session)
      if let order = course.followedBy {
        effects.append(.goAway(order, lastStream: lastStream(of: order, on: id)))
      }
    case .hang(.answer): give(answer, of: course, on: stream, session)
    case .hang(.nothing), .loseAnswer(.nothing), .loseAnswer(.answer): break
    case .hang(.resetStream), .loseAnswer(.resetStream): session.reset(stream, code: .internalError)
    case .hang(.close), .loseAnswer(.close), .close: effects.append(.close)
    case .resetStream(let code): session.reset(stream, rawCode: code)
    case .resetConnection: effects.append(.reset)
    case .goAway(let order):
      let last = lastStream(of: order, on: id)
      if order.lastStream != .beforeThis {
        give(answer, of: course, on: stream, session)
      } else if isOvertaken(id) {
        session.reset(stream, code: .refusedStream)
      }
      effects.append(.goAway(order, lastStream: last))
    }
  }

  /// It is not held any more.
  private func release(_ course: Course) {
    guard course.isHolding else { return }
    for injection in course.injections where injection.holds { behaviour.plan.tallies.release(injection) }
  }

  private func give(
    _ answer: AnswerTemplates.Template?, of course: Course, on stream: RequestStream, _ session: HTTP2ServerSession
  ) {
    announceStreams(before: course.answer.status, on: stream, session)
    countRejection(course.answer.status)
    guard let answer else { return session.respond(to: stream, headers: answers.headersTooLarge) }
    guard !course.shape.isPlain else {
      return session.respond(to: stream, headers: answer.headers, body: course.answer.body)
    }
    let parts = course.shape.parts(of: course.answer.body, status: course.answer.status)
    session.respond(
      to: stream, headers: course.shape.headers(answer.headers), parts: parts, isHeld: course.shape.dribble != nil)
    guard let interval = course.shape.interval else { return }
    // Without a body there is still the end of the stream to wait for.
    held[stream.id] = HeldPush(
      stream: stream, course: course, answer: answer, countKey: nil, began: batchBegan, piecesLeft: max(1, parts.count))
    effects.append(.wake(stream: stream.id, after: interval))
  }

  private func lastStream(of order: Action.GoAwayOrder, on id: Int32) -> Int32 {
    let last =
      switch order.lastStream {
      case .beforeThis: isOvertaken(id) ? highestTaken : max(0, id - 2)
      case .this: max(id, highestTaken)
      case .all: Int32.max
      }
    return min(last, lastServedStream)
  }

  /// Whether pushes of later streams were judged before this one, as happens to one that was held. GOAWAY then names
  /// those too, or it would not tell the truth of them, and this one is refused by itself.
  private func isOvertaken(_ id: Int32) -> Bool { highestTaken > id }

  // MARK: - Records

  private func pending(_ course: Course) -> Record.End {
    Record.End(
      outcome: .pending, accepted: false, served: Record.Served(),
      aftermath: Aftermath(injections: course.injections), finishedAt: nil)
  }

  /// - Parameter latency: of the answer, in nanoseconds; nil for one that leaves with the others of this read.
  private func ending(of course: Course, on stream: RequestStream, latency: Int64? = nil) -> Record.End {
    var served = Record.Served()
    if course.isAnswered {
      served = Record.Served(
        status: course.answer.status, reason: course.answer.reason, latencyNanoseconds: latency)
    }
    let outcome: Record.Outcome = course.isFaulted ? .faulted : course.isAccepted ? .accepted : .rejected
    var aftermath: Aftermath?
    if !course.injections.isEmpty {
      aftermath = Aftermath(
        injections: course.injections, unusualReason: course.isAnswered ? course.answer.unusualReason : nil,
        reset: resetName(of: course, on: stream.id),
        goAway: course.goAway.map { told($0, on: stream.id) },
        closed: course.closing, endedAt: course.isAnswered ? nil : MachineTime.nanoseconds)
    }
    return Record.End(
      outcome: outcome, accepted: course.isAccepted, served: served, aftermath: aftermath, finishedAt: now)
  }

  private func resetName(of course: Course, on id: Int32) -> String? {
    if case .goAway(let order) = course.end, order.lastStream == .beforeThis, isOvertaken(id) {
      return HTTP2ErrorCode.refusedStream.name
    }
    return course.resetName
  }

  private func told(_ order: Action.GoAwayOrder, on id: Int32) -> Aftermath.GoAway {
    Aftermath.GoAway(
      code: HTTP2ErrorCode.name(of: order.code), lastStream: lastStream(of: order, on: id), debugData: order.debugData)
  }

  private func finish(_ push: HeldPush, with end: Record.End) {
    if end.accepted, end.served.status == 200, let key = push.countKey {
      attempts.accept(key)
    }
    if let seq = push.seq { state.inbox.finish(seq, with: end) }
  }
}
