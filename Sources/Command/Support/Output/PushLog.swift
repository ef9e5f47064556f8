import APNSMockFaultModel
import APNSMockInbox
import APNSMockRules
import Logging
import MockAPNS

/// Logs a line at level `debug` for each push, once its attempt has ended. At other levels nothing follows the pushes.
struct PushLog: Sendable {
  private let reader: EventReader
  private let task: Task<Void, Never>

  /// Starts to log; returns nil at any other level.
  init?(of state: ServerState, logger: Logger) {
    guard logger.logLevel <= .debug, let reader = state.events.addReader() else { return nil }
    self.reader = reader
    task = Task {
      await reader.forEachEndedPush(missed: { logger.debug("\($0) pushes and other events are not logged") }) {
        record in
        logger.debug("\(Self.message(record))", metadata: Self.metadata(record))
      }
    }
  }

  /// Logs the pushes that are left, and ends.
  func finish() async {
    await reader.finish()
    await task.value
  }

  private static func message(_ record: Record) -> String {
    let reason = record.sentReason.map { " \($0)" } ?? ""
    return "push \(record.seq): " + (record.sentResponse.status.map { "\($0)\(reason)" } ?? record.outcome.rawValue)
  }

  private static func metadata(_ record: Record) -> Logger.Metadata {
    let texts: [(String, String?)] = [
      ("outcome", record.outcome.rawValue), ("connection", record.connection.id),
      ("token", record.deviceToken.map(DeviceToken.abbreviated)), ("topic", record.topic),
      ("push_type", record.pushType), ("apns_id", record.apnsID), ("rule", record.wireDetails?.injections.first?.rule),
      ("traceparent", record.headers.first { $0.name == "traceparent" }?.value),
    ]
    var metadata: Logger.Metadata = ["attempt": .stringConvertible(record.attempt)]
    for case (let name, let text?) in texts { metadata[name] = .string(text) }
    if let latency = record.sentResponse.latencyNanoseconds {
      metadata["latency_ms"] = .stringConvertible(Double(latency / 1000) / 1000)
    }
    return metadata
  }
}
