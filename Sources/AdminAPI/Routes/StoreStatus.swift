internal import HTTPTypes
internal import APNSMockInbox
internal import APNSMockNotation

extension Problem {
  /// Creates the answer to a request that needs a store that fails.
  init(_ failure: StoreUnavailable) {
    guard !failure.isByReset else {
      self.init(
        status: .serviceUnavailable, detail: failure.problem, hint: "Repeat the request.", headers: [.retryAfter: "1"])
      return
    }
    self.init(
      status: .serviceUnavailable, kind: .storeUnavailable,
      detail: "the store of the inbox fails: \(failure.problem)",
      hint: "See GET /api/v1/status and the server's log, and repeat the request when the store works.",
      headers: [.retryAfter: "1"])
  }
}

extension RecordWriter {
  /// Writes the condition of the store as members of an object.
  func write(to writer: inout JSONWriter) {
    let figures = figures
    writer.member("place", store.place)
    writer.member("durable", options.durability.rawValue)
    writer.member("on_failure", options.failurePolicy.rawValue)
    writer.member("retain_ms", options.retention)
    writer.member("problem", figures.problem)
    writer.member("records_written", figures.records)
    writer.member("batches", figures.batches)
    writer.member("last_batch", figures.lastBatch)
    writer.member("last_latency_ms", figures.lastLatency / .milliseconds(1))
    writer.member("lost", figures.lost)
    writer.member("refused", figures.refused)
  }
}
