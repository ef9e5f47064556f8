internal import APNSMockRules
internal import APNSMockFaultModel
internal import APNSMockFaults
internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS

/// The route of the Prometheus metrics. No label has values that clients can choose without bound, such as tokens,
/// ids or topics.
///
/// Counters never decrease, whatever is reset; they start at zero with the process.
struct MetricsRoutes: Sendable {
  let state: ServerState
  let version: String
  /// The webhook whose counts are shown.
  let webhook: Webhook?
  /// When the certificates expire, as of the start, which reads them.
  private let expiries: [String: Int64]
  private let findingCounts = FindingCounts()

  static let path = "/metrics"

  var routes: [Route] { [.get(Self.path, metrics)] }

  /// Returns the route of a standby server: it has pushes when it is active.
  static func standby(version: String, _ environment: PushEnvironment) -> Route {
    let startTime = MachineTime.nanosecondsSince1970 / 1_000_000
    return .get(path) { request, _ in
      response(to: request) { write(version, environment, startTime: startTime, isReady: false, to: &$0) }
    }
  }

  private static func response(to request: Request, _ write: (inout MetricsText) -> Void) -> Response {
    let accepts = request.headers[.accept]?.lowercased() ?? ""
    let format: MetricsText.Format = accepts.contains("application/openmetrics-text") ? .openMetrics : .prometheus
    var text = MetricsText(format)
    write(&text)
    return .text(text.text, type: format.contentType)
  }

  init(state: ServerState, version: String, webhook: Webhook? = nil) {
    (self.state, self.version, self.webhook) = (state, version, webhook)
    expiries = state.certificates.expiries
  }

  private func metrics(_ request: Request, _ context: AdminContext) async -> Response {
    let findings = await findingCounts.counts(of: state)
    return Self.response(to: request) { text in
      Self.write(
        version, state.configuration.environment, startTime: state.startTime, isReady: state.phase == .ready, to: &text)
      writePushes(to: &text)
      writeFaults(to: &text)
      writeConnections(to: &text)
      writeInbox(to: &text)
      if let upstream = state.upstream { write(upstream.figures, to: &text) }
      writeFindings(findings, to: &text)
      writeCertificates(to: &text)
      if let webhook { writeWebhook(webhook.counts, to: &text) }
    }
  }

  private static func write(
    _ version: String, _ environment: PushEnvironment, startTime: Int64, isReady: Bool, to text: inout MetricsText
  ) {
    text.family(
      "apns_mock_build_info", .gauge, "The program's version and the environment of APNs.",
      [.init(labels: [("version", version), ("environment", environment.rawValue)], value: "1")])
    ProcessFigures.write(startTime: startTime, to: &text)
    text.family("apns_mock_ready", .gauge, "Whether the server is ready (1) or not (0).", isReady ? 1 : 0)
  }

  private func writePushes(to text: inout MetricsText) {
    let counts = state.inbox.counts
    text.family(
      "apns_mock_pushes", .counter, "Pushes by how they ended and by what went out.",
      counts.results.map { result, count in
        let reason = result.hasUnusualReason ? "other" : result.reason?.text ?? ""
        return .init(
          labels: [
            ("outcome", result.outcome.rawValue), ("status", result.status.map { String($0) } ?? ""),
            ("reason", reason),
          ], value: String(count))
      })
    text.family("apns_mock_pushes_pending", .gauge, "Delayed pushes without a response.", counts.pending)
    text.histogram(
      "apns_mock_push_latency_seconds", "Time from the end of a request to its response.",
      bounds: LatencyHistogram.bounds.map { Double($0) / 1e9 }, counts: counts.latency.counts,
      sum: Double(counts.latency.sum) / 1e9)
  }

  private func writeFaults(to text: inout MetricsText) {
    text.family(
      "apns_mock_faults_injected", .counter, "How often rules fired, by rule and what it did.",
      state.faults.counters.injections.map { rule, action, count in
        .init(labels: [("rule", rule), ("action", action.rawValue)], value: String(count))
      })
    text.family(
      "apns_mock_faults_halted", .gauge, "Whether fault injection is paused (1) or not (0).",
      state.faults.selection.isPaused ? 1 : 0)
  }

  private func writeConnections(to text: inout MetricsText) {
    let counts = state.connections.counts
    text.family("apns_mock_connections_open", .gauge, "Connections of providers now.", state.connections.openCount)
    text.family("apns_mock_connections_opened", .counter, "Connections of providers that were accepted.", counts.opened)
    text.family(
      "apns_mock_tls_handshakes", .counter, "TLS handshakes by result.",
      [
        .init(labels: [("result", "done")], value: String(counts.handshakes)),
        .init(labels: [("result", "failed")], value: String(counts.failedHandshakes)),
      ])
  }

  private func writeInbox(to text: inout MetricsText) {
    // Not the settled state, for which a slow store would make this wait.
    let inbox = state.inbox.snapshot()
    text.family("apns_mock_inbox_records", .gauge, "Records in the inbox.", inbox.count)
    text.family("apns_mock_inbox_size_bytes", .gauge, "Memory used by the records.", inbox.bytes)
    text.family(
      "apns_mock_inbox_evicted_records", .counter,
      "Pushes removed because of --max-records, --max-bytes or --retain, or not kept.", state.inbox.counts.evicted)
    if let store = state.inbox.writer { writeStore(store.figures, to: &text) }
    text.family("apns_mock_waits", .gauge, "Requests that wait for pushes now.", state.inbox.waiterCount)
    text.family("apns_mock_event_streams", .gauge, "Clients that follow events now.", state.events.readerCount)
  }
}

extension MetricsRoutes {
  private func write(_ figures: UpstreamPool.Figures, to text: inout MetricsText) {
    let counts = [("answered", figures.answered), ("refused", figures.refused), ("unknown", figures.unknown)]
    text.family(
      "apns_mock_upstream_pushes", .counter, "Pushes that were forwarded to upstream, by what it did with them.",
      counts.map { result, count in .init(labels: [("result", result)], value: String(count)) })
    text.family("apns_mock_upstream_waiting", .gauge, "Pushes that wait for a stream to upstream.", figures.waiting)
    text.family("apns_mock_upstream_open", .gauge, "Pushes that wait for upstream's answer.", figures.open)
  }

  private func writeFindings(_ counts: [Finding.Kind: Int], to text: inout MetricsText) {
    text.family(
      "apns_mock_findings", .gauge, "Findings on the newest \(FindingCounts.records) pushes in the inbox.",
      Finding.Kind.allCases.map { kind in
        .init(labels: [("finding", kind.rawValue)], value: String(counts[kind] ?? 0))
      })
  }

  private func writeCertificates(to text: inout MetricsText) {
    text.family(
      "apns_mock_certificate_expiry_seconds", .gauge, "When the certificate expires, in seconds since 1970.",
      expiries.sorted { $0.key < $1.key }.map {
        .init(labels: [("certificate", $0.key)], value: String($0.value / 1000))
      })
  }

  private func writeWebhook(_ counts: Webhook.Counts, to text: inout MetricsText) {
    let results = [("delivered", counts.delivered), ("dropped", counts.dropped), ("failed", counts.failed)]
    text.family(
      "apns_mock_webhook_pushes", .counter, "Pushes for the webhook by result.",
      results.map { .init(labels: [("result", $0.0)], value: String($0.1)) })
    text.family(
      "apns_mock_webhook_retries", .counter, "Attempts of the webhook that repeated an earlier one.", counts.retries)
  }

  private func writeStore(_ figures: RecordWriter.Figures, to text: inout MetricsText) {
    text.family(
      "apns_mock_store_working", .gauge, "1 if the store of the inbox works, 0 while it fails.",
      figures.problem == nil ? 1 : 0)
    text.family("apns_mock_store_written_records", .counter, "Records written to the store.", figures.records)
    text.family("apns_mock_store_batches", .counter, "Batches written to the store.", figures.batches)
    text.family(
      "apns_mock_store_waiting_records", .gauge, "Records that are not written to the store yet.",
      state.inbox.waitingRecords)
    text.family(
      "apns_mock_store_lag_seconds", .gauge, "Age of the oldest push that is not written to the store yet.",
      [.init(labels: [], value: String(Double(state.inbox.writingLag.nanoseconds) / 1e9))])
    text.family(
      "apns_mock_store_lost_records", .counter, "Records lost because the store failed.", figures.lost)
    text.family(
      "apns_mock_store_refused_pushes", .counter, "Pushes answered 503 because the store failed.", figures.refused)
    text.family(
      "apns_mock_store_cpu_seconds", .counter, "CPU time of the thread that writes to the store.",
      [.init(labels: [], value: String(Double(figures.processorTime.nanoseconds) / 1e9))])
    text.family(
      "apns_mock_store_write_seconds", .counter, "Time that writing to the store took.",
      [.init(labels: [], value: String(Double(figures.time.nanoseconds) / 1e9))])
  }
}
