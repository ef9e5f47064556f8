internal import APNSRules
internal import Faults
internal import Hummingbird
internal import Inbox
internal import MockAPNS

/// The route of the Prometheus metrics. No label has values that clients can choose without bound, such as tokens,
/// ids or topics.
///
/// Counters never decrease, whatever is reset; they start at zero with the process.
struct MetricsRoutes: Sendable {
  let state: ServerState
  let version: String

  var routes: [Route] { [.get("/metrics", metrics)] }

  private func metrics(_ request: Request, _ context: BasicRequestContext) -> Response {
    let accepts = request.headers[.accept]?.lowercased() ?? ""
    let format: MetricsText.Format = accepts.contains("application/openmetrics-text") ? .openMetrics : .prometheus
    var text = MetricsText(format)
    writeServer(to: &text)
    writePushes(to: &text)
    writeFaults(to: &text)
    writeConnections(to: &text)
    writeInbox(to: &text)
    return .text(text.text, type: format.contentType)
  }

  private func writeServer(to text: inout MetricsText) {
    text.family(
      "apns_mock_build_info", .gauge, "The program's version and the environment of APNs.",
      [
        .init(
          labels: [("version", version), ("environment", state.configuration.environment.rawValue)], value: "1")
      ])
    text.family(
      "apns_mock_process_start_time_seconds", .gauge, "When the server started, in seconds since 1970.",
      [.init(value: "\(Double(state.startTime) / 1000)")])
    text.family("apns_mock_ready", .gauge, "Whether the server is ready (1) or not (0).", state.phase == .ready ? 1 : 0)
  }

  private func writePushes(to text: inout MetricsText) {
    let counts = state.inbox.counts
    text.family(
      "apns_mock_pushes", .counter, "Pushes by how they ended and by what went out.",
      counts.endings.map { ending, count in
        let reason = ending.hasUnusualReason ? "other" : ending.reason?.text ?? ""
        return .init(
          labels: [
            ("outcome", ending.outcome.rawValue), ("status", ending.status.map { String($0) } ?? ""),
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
      state.faults.selection.isHalted ? 1 : 0)
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
    let inbox = state.inbox.snapshot()
    text.family("apns_mock_inbox_records", .gauge, "Records in the inbox.", inbox.count)
    text.family("apns_mock_inbox_size_bytes", .gauge, "Memory used by the records.", inbox.bytes)
    text.family(
      "apns_mock_inbox_evicted_records", .counter, "Records evicted because the inbox is full.",
      state.inbox.counts.evicted)
    text.family("apns_mock_waits", .gauge, "Requests that wait for pushes now.", state.inbox.waiterCount)
    text.family("apns_mock_event_streams", .gauge, "Clients that follow events now.", state.events.readerCount)
  }
}
