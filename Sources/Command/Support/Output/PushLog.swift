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
    let latency = record.sentResponse.latencyNanoseconds.map { String(Double($0 / 1000) / 1000) }
    let values: [(String, String?)] = [
      ("outcome", record.outcome.rawValue), ("attempt", String(record.attempt)), ("connection", record.connection.id),
      ("token", record.deviceToken.map(DeviceToken.abbreviated)), ("topic", record.topic),
      ("push_type", record.pushType),
      ("apns_id", record.apnsID), ("latency_ms", latency), ("rule", record.wireDetails?.injections.first?.rule),
      ("traceparent", record.headers.first { $0.name == "traceparent" }?.value),
    ]
    return values.reduce(into: [:]) { metadata, value in
      if let text = value.1 { metadata[value.0] = .string(text) }
    }
  }
}
