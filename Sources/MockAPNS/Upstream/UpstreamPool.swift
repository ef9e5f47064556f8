package import APNSMockHTTPMessage
import APNSMockNotation
import APNSMockRules
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// The connections to upstream, over which requests are forwarded: one for each team and event loop of providers, as far
/// as their number is allowed. Memory and time are bounded: requests that wait for too long or are too many, and those
/// without a response in time, end with a reason.
package final class UpstreamPool: Sendable {
  /// What was counted and observed since the start.
  package struct Figures: Sendable {
    /// The requests that were answered by upstream, that were not sent or refused, and whose decision is unknown.
    package internal(set) var answered = 0
    package internal(set) var refused = 0
    package internal(set) var unknown = 0
    /// The requests that wait for a free stream, and those without an answer.
    package internal(set) var waiting = 0
    package internal(set) var open = 0
    /// The connections that are open, and that were made.
    package internal(set) var connections = 0
    package internal(set) var connectionsMade = 0
    /// The first SETTINGS of the newest connection, and the newest GOAWAY.
    package internal(set) var settings: ProbeResult.Settings?
    package internal(set) var goAway: String?
    /// The problems in one sentence each, with their counts; the newest last.
    package internal(set) var problems: [(text: String, count: Int)] = []

    private static let maxProblems = 20

    mutating func add(problem text: String) {
      var count = 1
      if let index = problems.firstIndex(where: { $0.text == text }) { count += problems.remove(at: index).count }
      problems.append((text, count))
      if problems.count > Self.maxProblems { problems.removeFirst() }
    }
  }

  /// A queue, with what it is chosen by.
  private struct Member {
    /// The number of the queue, from 1.
    let number: Int
    /// The team whose requests it sends; nil if none is known yet.
    var team: String?
    let eventLoop: any EventLoop
    let queue: NIOLoopBoundBox<UpstreamQueue>

    func execute(_ work: @escaping @Sendable (UpstreamQueue) -> Void) {
      eventLoop.execute { [queue] in work(queue.value) }
    }
  }

  private struct Members {
    var all: [Member] = []
    /// The newest of those that only wait for their last responses.
    private(set) var retired: [Member] = []
    var made = 0

    private static let maxRetired = 64

    mutating func retire(_ index: Int) {
      let member = all.remove(at: index)
      member.execute { $0.retire() }
      retired.append(member)
      if retired.count > Self.maxRetired { retired.removeFirst() }
    }

    mutating func removeAll() -> [Member] {
      defer { (all, retired) = ([], []) }
      return all + retired
    }

    /// Returns the index of the queue to use; nil if there should be another one.
    ///
    /// - Parameter limit: The maximum number of queues.
    func index(for team: String?, on eventLoop: any EventLoop, limit: Int) -> Int? {
      func isFitting(_ member: Member) -> Bool { team == nil || member.team == nil || member.team == team }
      if let index = all.firstIndex(where: { $0.eventLoop === eventLoop && isFitting($0) }) { return index }
      guard all.count == limit else { return nil }
      let fitting = all.indices.filter { isFitting(all[$0]) }
      return fitting.filter { all[$0].team == team }.randomElement() ?? fitting.randomElement()
    }
  }

  package let settings: UpstreamSettings
  private let members = NIOLockedValueBox(Members())
  private let shared = NIOLockedValueBox(UpstreamQueue.Shared())

  /// Creates a pool. It connects when the first request is forwarded.
  package init(_ settings: UpstreamSettings) { self.settings = settings }

  /// What was counted until now.
  package var figures: Figures { shared.withLockedValue(\.figures) }

  /// Forwards requests; their receivers get the answers.
  func forward(_ pushes: [UpstreamPush]) {
    var rest = pushes[...]
    while let first = rest.first {
      let group = rest.prefix { $0.team == first.team && $0.receiver === first.receiver }
      rest = rest[group.endIndex...]
      let member = member(for: first.team, on: first.receiver.eventLoop)
      for push in group { push.queueNumber = member.number }
      member.execute { $0.add(group) }
    }
  }

  /// Ends a request that its provider has given up: it is not sent, or its stream is reset.
  ///
  /// - Returns: Whether nothing of it was sent.
  func cancel(_ push: UpstreamPush) -> Bool {
    if push.cancel() { return true }
    let member = members.withLockedValue { ($0.all + $0.retired).first { $0.number == push.queueNumber } }
    member?.execute { $0.abandon(push) }
    return false
  }

  /// Returns the queue for the requests of a team: of the provider's event loop, so that they stay on its thread, else a
  /// new one there, else any of the team. APNs binds a connection to the team of its first request (Protocol.md,
  /// section 3.3).
  private func member(for team: String?, on eventLoop: any EventLoop) -> Member {
    members.withLockedValue { members in
      if let index = members.index(for: team, on: eventLoop, limit: settings.connections) {
        members.all[index].team = members.all[index].team ?? team
        return members.all[index]
      }
      if members.all.count == settings.connections {
        // A team without a connection gets the second one of another team.
        let teams = members.all.map(\.team)
        guard let index = teams.lastIndex(where: { team in teams.count { $0 == team } > 1 }) else {
          return members.all[0]
        }
        members.retire(index)
      }
      members.made += 1
      let queue = UpstreamQueue(settings, on: eventLoop, shared)
      let member = Member(
        number: members.made, team: team, eventLoop: eventLoop,
        queue: .makeBoxSendingValue(queue, eventLoop: eventLoop))
      members.all.append(member)
      return member
    }
  }

  /// Forwards one request and returns its end. `headers` begin with the pseudo-header fields.
  package func send(_ headers: HeaderList, _ body: [UInt8]) async -> UpstreamAnswer {
    let headers = headers.bytes.withUnsafeBytes { settings.headers(from: $0) }
    return await withCheckedContinuation { continuation in
      let receiver = UpstreamReceiver(on: MultiThreadedEventLoopGroup.singleton.any()) { answers in
        for answer in answers { continuation.resume(returning: answer.answer) }
      }
      forward([UpstreamPush(headers: headers, body: body, team: nil, stream: 1, receiver: receiver)])
    }
  }

  /// Closes all connections. Later requests open new ones.
  package func close() async {
    let members = members.withLockedValue { $0.removeAll() }
    for member in members {
      try? await member.eventLoop.submit { [queue = member.queue] in queue.value.close("the server stops") }.get()
    }
  }
}

extension UpstreamPool.Figures {
  mutating func count(_ answer: UpstreamAnswer, from settings: UpstreamSettings) {
    switch answer.result {
    case .response:
      answered += 1
      let status = answer.status ?? 0
      // Other rejections are those of single pushes; a wrong credential concerns every push.
      if status == 200 || answer.reason != nil && [400, 410, 413].contains(status) { return }
      let cause = answer.reason ?? "without a reason: it may not be APNs"
      let hint =
        answer.reason == Reason.missingProviderToken.text && settings.certificate == nil
        ? "; for a provider with a certificate, specify it with --upstream-cert FILE and --upstream-key FILE" : ""
      add(problem: "\(settings.endpoint) answers \(status) \(cause)\(hint)")
    case .excluded: refused += 1
    case .refused(let problem):
      refused += 1
      if answer.connection == nil { add(problem: problem) }
    case .unknown: unknown += 1
    }
  }
}
