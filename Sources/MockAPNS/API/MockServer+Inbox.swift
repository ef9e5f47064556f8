import APNSMockInbox
import APNSMockNotation

extension MockServer {
  /// The settings for a client of the first APNs listener.
  public var settings: ClientSettings {
    let listener = (addresses.first ?? Endpoint(host: "127.0.0.1", port: 0)).reachable
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

  /// Waits until a number of pushes matches a query. Pushes that are already in the inbox count; a reset restarts
  /// the count.
  ///
  /// - Parameters:
  ///   - count: The minimum number of pushes; 0 to return at once if no push matches.
  ///   - query: A query such as `outcome:accepted token:ab12*`; empty for all pushes.
  ///   - timeout: The longest time to wait, up to five minutes.
  /// - Returns: The first 1000 matching pushes, in the order of arrival.
  /// - Throws: `MockServerError`, which after a timeout names the pushes that nearly match.
  @discardableResult
  public func wait(
    for count: Int = 1, matching query: String = "", timeout: Duration = .seconds(10)
  ) async throws(MockServerError) -> [ReceivedPush] {
    let wait: WaitQuery
    let parameters = [("count", "\(count)"), ("timeout", DurationFormat.text(timeout)), ("q", query)]
      .map { (name: $0.0, value: $0.1) }
    do {
      wait = try WaitQuery(parameters, in: state.filterContext(nil))
    } catch {
      throw MockServerError(error)
    }
    let result: WaitResult
    do {
      result = try await state.inbox.wait(for: wait)
    } catch {
      throw MockServerError(.inconclusive, error.problem)
    }
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

  /// Verifies expectations on counts, order, retries and findings. Waits for them if they contain a `timeout`.
  ///
  /// - Parameter expectations: A JSON object as in the documentation page "Verify", such as
  ///   `{"expect": [{"match": "topic:com.example.app", "count": {"exactly": 1}}], "nothing_lost": true}`.
  /// - Throws: `MockServerError` with expected and actual values, and the nearest pushes.
  public func verify(_ expectations: String) async throws(MockServerError) {
    let verification: Verification
    do {
      verification = try Verification(
        json: Array(expectations.utf8), in: state.filterContext(state.inbox.snapshot()))
    } catch {
      throw MockServerError(.invalidInput, error.description)
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

  private func received(_ records: [Record]) -> [ReceivedPush] {
    let rulebook = state.rulebook
    return records.map { ReceivedPush($0, rulebook) }
  }
}
