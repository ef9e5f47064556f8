import APNSMockClientCommands
import Logging
import MockAPNS
import APNSMockNotation

/// A log handler that writes lines of text or JSON to standard error.
struct LineLogHandler: LogHandler {
  var metadata: Logger.Metadata = [:]
  var metadataProvider: Logger.MetadataProvider?
  var logLevel: Logger.Level

  /// The machine's time. Logs do not use the adjustable clock of the server.
  private static let clock = ServerClock()

  private let format: LogFormat
  private let isColored: Bool
  private let write: @Sendable ([UInt8]) -> Void

  /// Creates a handler that passes each line with its line break to `write`, by default to standard error.
  init(
    format: LogFormat, level: Logger.Level, colored: Bool = StandardStream.error.supportsColor,
    write: (@Sendable ([UInt8]) -> Void)? = nil
  ) {
    self.format = format
    self.write =
      write ?? { line in
        LogPipe.standardError.write(line) { dropped in
          Self.bytes(Self.gap(dropped), as: format, colored: colored)
        }
      }
    isColored = colored
    logLevel = level
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    var all = metadata
    if let provided = metadataProvider?.get() { all.merge(provided) { $1 } }
    if let added = event.metadata { all.merge(added) { $1 } }
    let line = LogLine(time: Self.clock.now, event: event, metadata: all)
    write(Self.bytes(line, as: format, colored: isColored))
  }

  private static func bytes(_ line: LogLine, as format: LogFormat, colored: Bool) -> [UInt8] {
    let bytes =
      switch format {
      case .text: Array(line.text(colored: colored).utf8)
      case .json: line.json
      }
    return bytes + [UInt8(ascii: "\n")]
  }

  /// Returns the line that replaces dropped lines.
  private static func gap(_ dropped: Int) -> LogLine {
    let event = LogEvent(
      level: .warning, message: "\(dropped) log lines were dropped because standard error was not read",
      metadata: nil, source: "apns-mock", file: #fileID, function: #function, line: #line)
    return LogLine(time: clock.now, event: event, metadata: [:])
  }
}

/// One log line, as text for people or as a JSON object for programs.
struct LogLine {
  /// Milliseconds since 1970 by the machine's clock, so that logs can be compared with those of other programs.
  let time: Int64
  let event: LogEvent
  /// The metadata of the logger and the event. The event's values override the logger's.
  let metadata: Logger.Metadata

  /// Returns a line such as `06:42:06.123 info    a push was rejected connection=c17 reason=BadTopic`, in UTC.
  func text(colored: Bool) -> String {
    let clock = (TimestampFormat.text(time) ?? "").dropFirst(11).dropLast()
    let level = event.level.rawValue
    let padding = String(repeating: " ", count: max(0, 8 - level.utf8.count))
    var line = "\(clock) \(colored ? Self.colored(event.level) : level)\(padding) \("\(event.message)".onOneLine)"
    for (key, value) in sorted { line += " \(key)=\("\(value)".onOneLine)" }
    return line
  }

  /// The JSON object, such as `{"time":…,"level":"info","message":…,"connection":"c17"}`.
  var json: [UInt8] {
    var writer = JSONWriter(capacity: 256)
    writer.object { writer in
      writer.member("time", TimestampFormat.text(time))
      writer.member("level", event.level.rawValue)
      writer.member("message", "\(event.message)")
      for (key, value) in sorted where !Self.ownMembers.contains(key) {
        writer.name(key)
        Self.write(value, to: &writer)
      }
    }
    return writer.bytes
  }

  private static let ownMembers: Set = ["time", "level", "message"]

  private var sorted: [(key: String, value: Logger.Metadata.Value)] {
    var sorted = metadata.sorted { $0.key < $1.key }
    if let error = event.error { sorted.append(("error", "\(error)")) }
    return sorted
  }

  private static func write(_ value: Logger.Metadata.Value, to writer: inout JSONWriter) {
    switch value {
    case .string(let text): writer.string(text)
    case .stringConvertible(let value as any BinaryInteger): writer.integer(value)
    case .stringConvertible(let value as Double): writer.number(value)
    case .stringConvertible(let value): writer.string("\(value)")
    case .array(let elements): writer.array { for element in elements { write(element, to: &$0) } }
    case .dictionary(let members):
      writer.object { writer in
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
          writer.name(name)
          write(value, to: &writer)
        }
      }
    }
  }

  private static func colored(_ level: Logger.Level) -> String {
    let code =
      switch level {
      case .trace, .debug: "2"
      case .info: "36"
      case .notice: "32"
      case .warning: "33"
      case .error, .critical: "31"
      }
    return "\u{1B}[\(code)m\(level.rawValue)\u{1B}[0m"
  }
}
