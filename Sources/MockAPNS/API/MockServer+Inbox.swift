import APNSMockInbox
import APNSMockNotation
import NIOConcurrencyHelpers

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

extension MockServer {
  /// The time of the server's clock, which tests can move.
  public var now: Date { Date(timeIntervalSince1970: Double(state.clock.now) / 1000) }

  /// The settings for a client of the first APNs listener.
  public var settings: ClientSettings {
    let listener = (addresses.first ?? MockServer.Endpoint(host: "127.0.0.1", port: 0)).reachable
    let folder = state.certificates
    return ClientSettings(
      // Some TLS libraries cannot validate certificates for IP addresses.
      host: listener.host == "127.0.0.1" ? "localhost" : listener.host, port: listener.port, caPath: folder.caPath,
      keyPath: folder.providerKeyPath, keyID: CertificateFolder.keyID, teamID: CertificateFolder.teamID,
      certificatePath: folder.clientPath, certificateKeyPath: folder.clientKeyPath, topic: CertificateFolder.topic)
  }

  /// Returns the pushes that match a query, in the order of arrival. A push is in the inbox before its response is
  /// sent.
  ///
  /// - Parameter query: A query such as `status:410 topic:com.example.*` (documentation page "Reading the inbox");
  ///   empty for all pushes.
  /// - Throws: `MockServerError` for an invalid query.
  public func pushes(matching query: String = "") throws(MockServerError) -> [ReceivedPush] {
    let snapshot = state.inbox.snapshot()
    var page = PageQuery()
    page.limit = max(1, snapshot.count)
    do {
      page.selection = try Selection([(name: "q", value: query)], in: state.filterContext(snapshot))
    } catch {
      throw MockServerError(error)
    }
    do {
      return received(try snapshot.page(page).items)
    } catch {
      throw MockServerError(.inconclusive, error.problem)
    }
  }

  /// Returns the pushes that match a query, in the order of arrival.
  ///
  /// - Throws: `MockServerError` for an invalid value in the query.
  public func pushes(matching query: Query) throws(MockServerError) -> [ReceivedPush] {
    try pushes(matching: query.description)
  }

  /// Waits until a number of pushes matches a query. Pushes that are already in the inbox count; a reset restarts
  /// the count.
  ///
  /// - Parameters:
  ///   - count: The minimum number of pushes; 0 to return at once if no push matches.
  ///   - query: A query such as `outcome:accepted token:ab12*`; empty for all pushes.
  ///   - timeout: The longest time to wait, up to five minutes.
  /// - Returns: The first 1000 matching pushes, in the order of arrival.
  /// - Throws: `MockServerError`, which after a timeout names the pushes that nearly match, and the location of the call.
  @discardableResult
  public func wait(
    for count: Int = 1, matching query: String = "", timeout: Duration = .seconds(10), file: String = #filePath,
    line: Int = #line
  ) async throws(MockServerError) -> [ReceivedPush] {
    do {
      return try await received(for: count, matching: query, timeout: timeout)
    } catch {
      throw error.at(file, line)
    }
  }

  /// Waits until a number of pushes matches a query, as with the query as a text.
  @discardableResult
  public func wait(
    for count: Int = 1, matching query: Query, timeout: Duration = .seconds(10), file: String = #filePath,
    line: Int = #line
  ) async throws(MockServerError) -> [ReceivedPush] {
    try await wait(
      for: count, matching: query.description, timeout: timeout, file: file, line: line)
  }

  private func received(
    for count: Int, matching query: String, timeout: Duration
  ) async throws(MockServerError) -> [ReceivedPush] {
    let parameters = [("count", "\(count)"), ("timeout", DurationFormat.text(timeout)), ("q", query)]
      .map { (name: $0.0, value: $0.1) }
    let (wait, result) = try await result(of: parameters)
    guard result.isSatisfied else {
      let report = await WaitReport(
        result, of: wait, parameters: parameters, in: state.inbox,
        context: state.filterContext(state.inbox.snapshot()))
      throw MockServerError(
        result.isAbandoned ? .cancelled : result.isComplete ? .timedOut : .inconclusive,
        report.text)
    }
    return received(result.items)
  }

  /// Returns the pushes that match a query in the order of arrival: those in the inbox, then each that arrives, until the
  /// server stops or the task is cancelled. A push that begins to match when it ends, after a later one was returned, is left out: select
  /// by what is known when a push arrives, or use `wait(for:matching:)`.
  ///
  /// - Parameter query: A query such as `status:410`; empty for all pushes. An invalid one throws `MockServerError`.
  public func incomingPushes(matching query: String = "") -> AsyncThrowingStream<ReceivedPush, any Error> {
    let unread = NIOLockedValueBox((last: 0, pushes: [ReceivedPush]()[...]))
    return AsyncThrowingStream { [self] in
      while true {
        let (push, last) = unread.withLockedValue { unread in
          let push = unread.pushes.popFirst()
          unread.last = push?.seq ?? unread.last
          return (push, unread.last)
        }
        if let push { return push }
        // Short, because a stop of the server does not end a wait.
        let result = try await result(
          of: [("after", "\(last)"), ("timeout", "200ms"), ("q", query)]).result
        if result.items.isEmpty, result.isAbandoned || state.phase == .stopping { return nil }
        unread.withLockedValue { $0.pushes = received(result.items)[...] }
      }
    }
  }

  /// Returns the pushes that match a query in the order of arrival, as with the query as a text.
  public func incomingPushes(matching query: Query) -> AsyncThrowingStream<ReceivedPush, any Error> {
    incomingPushes(matching: query.description)
  }

  /// Waits until the condition that `parameters` state is met.
  private func result(
    of parameters: [(name: String, value: String)]
  ) async throws(MockServerError) -> (wait: WaitQuery, result: WaitResult) {
    let wait: WaitQuery
    do {
      wait = try WaitQuery(parameters, in: state.filterContext(nil))
    } catch {
      throw MockServerError(error)
    }
    do {
      return (wait, try await state.inbox.wait(for: wait))
    } catch {
      throw MockServerError(.inconclusive, error.problem)
    }
  }

  /// Verifies expectations on counts, order, retries and findings. Waits for them if they contain a `timeout`.
  ///
  /// - Parameter expectations: A document in YAML or JSON as in the documentation page "Verify", such as
  ///   `{expect: [{match: "topic:com.example.app", count: {exactly: 1}}], nothing_lost: true}`.
  /// - Throws: `MockServerError` with expected and actual values, the nearest pushes, and the location of the call.
  public func verify(
    _ expectations: String, file: String = #filePath, line: Int = #line
  ) async throws(MockServerError) {
    do {
      try await verified(expectations)
    } catch {
      throw error.at(file, line)
    }
  }

  /// Verifies expectations, as with a document as a text.
  public func verify(
    _ expectations: Expectations, file: String = #filePath, line: Int = #line
  ) async throws(MockServerError) {
    try await verify(expectations.json, file: file, line: line)
  }

  private func verified(_ expectations: String) async throws(MockServerError) {
    let verification: Verification
    do {
      verification = try Verification(
        json: YAMLNode.document(Array(expectations.utf8)).json, in: state.filterContext(state.inbox.snapshot()))
    } catch let error as YAMLError {
      let place = error.position.map { "line \($0.line), column \($0.column): " } ?? ""
      throw MockServerError(.invalidInput, place + error.message + (error.hint.map { ", \($0)" } ?? ""))
    } catch let error as FileFailure {
      // The positions are those in the same document as JSON.
      let problems = error.problems.map {
        FileProblem($0.severity, file: "", path: $0.path, $0.message, hint: $0.hint)
      }
      throw MockServerError(.invalidInput, FileFailure(problems).description)
    } catch {
      throw MockServerError(.invalidInput, "\(error)")
    }
    let report: VerificationReport?
    do {
      report = try await state.verify(verification)
    } catch {
      throw MockServerError(.inconclusive, "\(error)")
    }
    guard let report else {
      throw MockServerError(.cancelled, "cancelled before the expectations could be verified")
    }
    guard !report.isPassed else { return }
    throw MockServerError(report.isInconclusive ? .inconclusive : .verificationFailed, report.text)
  }

  /// Returns the mistakes of the provider that the pushes in the inbox show.
  public func findings() -> [ProviderFinding] {
    // Only a store, which servers in process do not have, cannot be read.
    let report = try? state.inbox.findings(by: state.rulebook, in: .allKinds)
    return (report?.findings ?? []).map(ProviderFinding.init)
  }

  func received(_ records: [Record]) -> [ReceivedPush] {
    let rulebook = state.rulebook
    return records.map { ReceivedPush($0, rulebook) }
  }
}
