import APNSRules
import Faults
import HTTP2Session
import HTTPMessage
import Inbox

/// Application of fault decisions to single pushes: responses, delays, stream resets, silence.
extension PushPath {
  /// Returns whether a rule could affect this push. On a server without rules this check is the only cost of faults.
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

  /// Applies the active faults to a push.
  ///
  /// - Parameter attempt: The push's attempt number, if a rule looked it up.
  /// - Returns: Whether a fault decided about the push, which is then recorded and answered or delayed. If false,
  ///   the APNs rules determine the response.
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
      // First attempts are the usual case and need no look-up.
      return number == 1 ? 1 : max(1, Int(number - attempts.unprocessedAttempts(of: identity.countKey)))
    }
    let atRequest = plan.rulesLeft(at: .request, for: glance, attempt: number, now: batchBegan)
    var atResponse: RulesLeft?
    if atRequest.isEmpty, !(verdict.isAccepted && isMagic(request, verdict)) {
      // Nearly all pushes return here, before anything is allocated.
      if !hasResponseRules { return false }
      let left = plan.rulesLeft(at: .response, for: glance, attempt: number, now: batchBegan)
      if left.isEmpty { return false }
      atResponse = left
    }
    attempts.expectRefused(identity.countKey)
    if !hasResponseRules, let fault = plan.firePlainAnswer(atRequest) {
      // An accepted provider token raises the stream limit before any response but a 403.
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

  /// Performs the decided action, or schedules it if it takes time.
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
    // If the client does not learn that the push was accepted, its next request is a retry.
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

  /// Continues a delayed push when its time has come.
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

  /// Completes a delayed push as aborted: the client reset the stream, the connection ended, or the server refused
  /// the stream.
  ///
  /// - Parameter reset: The code with which the server reset the stream; nil if it did not.
  func abandon(_ id: Int32, reset: HTTP2ErrorCode? = nil) {
    // Request and reset arrived in one read: commit first, because only a record in the inbox can be completed
    // there.
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

  /// Completes all delayed pushes as aborted, because the connection ended.
  func abandonAll() {
    for id in held.keys.sorted() { abandon(id) }
  }

  /// Answers every further push with this injected response.
  func drain(by injection: Injection, _ answer: Action.Answer) {
    draining = injection.doing(.respond(answer))
  }

  /// The time in nanoseconds after a GOAWAY within which a new stream is not reported as a client error: it may have
  /// crossed the GOAWAY on the wire, or the client had not read the frame yet. Half a second, for machines under
  /// load.
  private static let crossing: Int64 = 500_000_000

  /// Buffers a record of a push that arrived after a GOAWAY that excluded its stream.
  func ignore(_ stream: RequestStream) {
    let late = batchBegan - farewellAt
    let breach: Aftermath.Breach? =
      late < Self.crossing ? nil : .afterGoAway(lastStream: lastServedStream, nanoseconds: late)
    let verdict = Verdict(of: stream.request)
    let identity = identity(of: stream.request, verdict.facts)
    record(
      stream.request, verdict, isJudged: false, generatedID: [], key: identity.key,
      // The client must send an unprocessed push again; that is its next attempt.
      attempt: attempts.countUnprocessed(identity.countKey, now: batchBegan),
      Record.End(
        outcome: .faulted, accepted: false, served: Record.Served(), aftermath: breach.map { Aftermath(breach: $0) },
        finishedAt: now))
  }

  // MARK: - Decisions

  /// Evaluates the rules of an injection point and merges their actions into `course`.
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

  /// The connection's properties that rules can match.
  var traffic: Traffic.Connection {
    Traffic.Connection(
      number: log.number, client: log.clientAddress, listener: connection.listener, serverName: connection.sni,
      certificateUID: connection.certificate?.subjectUID, streamsOpened: streamsTaken)
  }

  // MARK: - Execution

  /// Returns the header fields of a response, with its ids.
  private func template(
    for answer: Course.Answer, to request: HTTPRequest, _ facts: PushFacts
  ) -> AnswerTemplates.Template {
    fillTemplate(status: answer.status, for: request, facts)
    // The bytes are copied only if the template is modified, or refilled while this copy is still in use.
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

  /// Releases the rules that were delaying the push.
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
    // Without a body, the end of the stream is still delayed.
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

  /// Returns whether pushes of later streams were evaluated before this one, which can happen when it was delayed.
  /// GOAWAY then has to include those streams too, and this one is refused with its own RST_STREAM.
  private func isOvertaken(_ id: Int32) -> Bool { highestTaken > id }

  // MARK: - Records

  private func pending(_ course: Course) -> Record.End {
    Record.End(
      outcome: .pending, accepted: false, served: Record.Served(),
      aftermath: Aftermath(injections: course.injections), finishedAt: nil)
  }

  /// Returns the end of the push's record.
  ///
  /// - Parameter latency: The response's latency in nanoseconds; nil for a response that leaves with the others of
  ///   this read.
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
