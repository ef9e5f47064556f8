internal import Inbox
internal import Notation

extension RecordWriter {
  /// Writes the condition of the store as members of an object.
  func write(to writer: inout JSONWriter) {
    let figures = figures
    writer.member("place", store.place)
    writer.member("durable", options.durability.rawValue)
    writer.member("on_failure", options.failurePolicy.rawValue)
    writer.member("retain", options.retention.map { DurationFormat.text(.milliseconds($0)) })
    writer.member("problem", figures.problem)
    writer.member("records_written", figures.records)
    writer.member("batches", figures.batches)
    writer.member("last_batch", figures.lastBatch)
    writer.member("last_latency", DurationFormat.text(figures.lastLatency))
    writer.member("lost", figures.lost)
    writer.member("refused", figures.refused)
  }
}
